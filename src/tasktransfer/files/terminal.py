"""Colours on a terminal, unless NO_COLOR is set (https://no-color.org).

Standard library only.
"""

from __future__ import annotations

import os
import sys
from typing import Literal, TextIO

Colour = Literal["red", "green", "yellow", "dim"]
_CODES: dict[Colour, str] = {"red": "31", "green": "32", "yellow": "33", "dim": "2"}


def is_coloured(stream: TextIO) -> bool:
    """Return whether output to a stream may have colours."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def apply_colour(text: str, colour: Colour, stream: TextIO | None = None) -> str:
    """Colour a text, or return it unchanged if the stream (default stdout) has no colours."""
    stream = stream or sys.stdout
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if is_coloured(stream) else text
