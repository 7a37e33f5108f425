"""Content digests: canonical JSON and its SHA-256."""

from __future__ import annotations

import hashlib
import json
from typing import Any

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def to_canonical_json(value: Any) -> str:
    """Convert a JSON value to canonical text for digests (sorted keys, no spaces, ASCII)."""
    return _ENCODER.encode(value)


def compute_digest(value: Any) -> str:
    """Compute the SHA-256 (hex) of a JSON value's canonical text."""
    return hashlib.sha256(to_canonical_json(value).encode()).hexdigest()
