"""The page's own files, and escaping of values for the page."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from markupsafe import Markup

HERE = Path(__file__).parent


def read_own_text(name: str) -> str:
    """Read a file in this folder, or a design's file: ``designs/transfer/report/heatmap.js``."""
    path = HERE / name
    return (path if path.exists() else HERE.parents[1] / name).read_text(encoding="utf-8")


def escape_json(value: Any) -> Markup:
    """Return JSON for a script element, escaped so that it cannot end the element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def encode_text(text: str, kind: str) -> str:
    """Return a text as a data URI of a media type."""
    return f"data:{kind};base64,{base64.b64encode(text.encode('utf-8')).decode('ascii')}"


def hash_of(text: str) -> str:
    """Return the hash of a style or script for the page's content security policy."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
