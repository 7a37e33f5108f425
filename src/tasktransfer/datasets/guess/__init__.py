"""A declaration guessed from the rows of a file, for ``tasktransfer data check``."""
