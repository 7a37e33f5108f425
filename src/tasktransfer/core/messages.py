"""Parts of messages: counts with their nouns, and suggestions of known names for a typo.

Every command imports this module, so it does not import pydantic.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def format_quantity(count: int, thing: str) -> str:
    """Format a count with its noun, as in 1 training or 2 trainings."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def suggest_name(name: str, names: Iterable[str]) -> str:
    """Suggest the nearest name in a sentence (`` Did you mean 'x'?``), or return "".

    The comparison ignores case, because "friends" for "Friends" is a likely mistake.
    """
    by_casefold = {known.casefold(): known for known in names}
    close = get_close_matches(name.casefold(), by_casefold, n=1, cutoff=0.5)
    return f" Did you mean {by_casefold[close[0]]!r}?" if close else ""
