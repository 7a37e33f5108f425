"""Selectors, which predict the best source of a target, and their evaluation."""
