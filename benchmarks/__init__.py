"""Measurements of speed, growth and statistics; run from the root of the repository.

They are not part of the package: nothing in ``src`` imports them.
"""
