"""Evaluations: numbers of an outcome or a fit on a split."""
