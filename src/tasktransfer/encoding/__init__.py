"""Tokenization of instances: tokenizers, the input texts of each family, and the cache of arrays.

The package does not import torch. Raise ``ENCODING_VERSION`` when the encoded data changes, because
caches and digests depend on it.
"""

ENCODING_VERSION = 2
"""Version of the conversion from instances to token ids (``encoding.encode``)."""
