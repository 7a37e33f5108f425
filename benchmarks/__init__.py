"""Measurements of speed, growth and statistics; run from the root of the repository.

No part of the package: nothing in ``src`` imports from here.
"""
