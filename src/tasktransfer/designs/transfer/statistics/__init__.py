"""Uncertainty of the results: intervals, tests and variance components."""
