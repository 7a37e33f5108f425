"""Content digests: one spelling of a JSON value, and its SHA-256."""

from __future__ import annotations

import hashlib
import json
from typing import Any

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical_json(value: Any) -> str:
    """The one spelling of a JSON value: sorted keys, no spaces, ASCII. Digests are taken of it."""
    return _ENCODER.encode(value)


def digest_of(value: Any) -> str:
    """SHA-256, in hex, of a JSON value's canonical spelling."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()
