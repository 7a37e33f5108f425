"""The figures of the paper, and those beside them."""
