"""Versions of generated models, readable without importing torch.

Raise a version when its code changes what it writes; caches and digests depend on it.
"""

TINY_RECIPE_VERSION = 2
"""Version of building and pre-training the tiny models (training/tiny.py)."""

BUILD_VERSION = 2
"""Version of building a model folder from an architecture (training/build.py)."""
