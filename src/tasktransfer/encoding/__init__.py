"""How instances become token ids: tokenizers, the texts of each family, and the cache of arrays.

Readable without torch. Raise the version when the code behind it changes what it writes; caches
and digests follow.
"""

ENCODING_VERSION = 2
"""How instances become token ids (``encoding.encode``)."""
