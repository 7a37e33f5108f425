"""Tokenization of instances: tokenizers, the input texts of each family, and the cache of arrays.

The package does not import torch. Raise ``ENCODING_VERSION`` (``core.identity``) when the
encoded data changes.
"""
