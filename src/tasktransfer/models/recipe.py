"""Versions of what the models package makes, readable without importing torch.

Raise a version when the code behind it changes what it writes; caches and digests follow.
"""

TINY_RECIPE_VERSION = 2
"""How the tiny models are built and pre-trained (training/tiny.py)."""

BUILD_VERSION = 2
"""How an architecture becomes a model without weights, and its words (training/build.py)."""
