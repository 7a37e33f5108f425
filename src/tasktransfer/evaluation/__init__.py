"""Evaluation of outcomes and fits on a split."""
