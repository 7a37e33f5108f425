"""API keys of endpoints: read from the environment, checked, and hidden in all output.

This module uses the standard library only.
"""

from __future__ import annotations

import html
import json
import os
import urllib.parse
from dataclasses import dataclass, field
from functools import cached_property

from tasktransfer.errors import ConfigError

HIDDEN = "(key)"
"""Replacement for a key in texts."""
SHORTEST_SECRET = 8
"""Minimum length of a secret key in characters.

A shorter key (``EMPTY``, ``none``) is a placeholder that may occur as a word in an answer."""


@dataclass(frozen=True)
class Key:
    """A key whose value is never printed."""

    value: str = field(repr=False)

    @cached_property
    def _encodings(self) -> tuple[str, ...]:
        """Encodings of the key that a server may repeat, longest first."""
        plain = {self.value, " ".join(self.value.split())}
        escaped = {json.dumps(text)[1:-1] for text in plain} | {repr(text)[1:-1] for text in plain}
        escaped |= {json.dumps(text)[1:-1] for text in escaped}
        quoted = {urllib.parse.quote(text, safe=safe) for text in plain for safe in ("", "/")}
        quoted |= {urllib.parse.quote_plus(text) for text in plain}
        for mark in "\"'":
            plain |= {text.replace(mark, 2 * mark) for text in plain}
        marked = {html.escape(text, quote=quote) for text in plain for quote in (True, False)}
        return tuple(sorted(plain | escaped | quoted | marked, key=len, reverse=True))

    def hide(self, text: str) -> str:
        """Replace the key in a text by ``(key)``."""
        for spelling in self._encodings:
            text = text.replace(spelling, HIDDEN)
        return text

    def hide_in_answer(self, text: str) -> str:
        """Hide the key in a model's answer, unless the key is only a short placeholder."""
        return text if len(self.value) < SHORTEST_SECRET else self.hide(text)


def read_key(variable: str | None) -> Key | None:
    """Read the key from an environment variable, or return None if it is not set.

    Raises:
        ConfigError: the value is not a valid key. The message names the variable, not the value.
    """
    value = os.environ.get(variable, "").strip() if variable else ""
    if variable is None or not value:
        return None
    invalid = next((n for n, c in enumerate(value) if not (c.isascii() and c.isprintable())), None)
    if invalid is not None:
        raise ConfigError(
            f"{variable}: The value of the environment variable is not a key. Its character "
            f"{invalid + 1} of {len(value)} is a line end, a control character or not ASCII. Set "
            "the variable to the key without other characters."
        )
    return Key(value)
