"""Tokenization of instances: tokenizers, the input texts of each family, and the cache of arrays.

Readable without torch. Raise the version when the code changes what it writes; caches and digests
depend on it.
"""

ENCODING_VERSION = 2
"""Version of the conversion from instances to token ids (``encoding.encode``)."""
