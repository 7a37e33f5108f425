"""Operation of a study: its state, its cost, sharing its results, and cleaning up."""
