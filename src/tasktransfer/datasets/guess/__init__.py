"""Guesses of a declaration from the rows of a file, for ``tasktransfer data check``."""
