"""Where designs fall short of the contract: the one list, and how tests are told of it.

An entry is mended by removing it: a case that passes and stands here fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatch

import pytest

FALLS_SHORT: Mapping[str, Mapping[str, str]] = {
    "same members": {
        "transfer-real": "transfer prints Table 2's averages beside those over other pairs, with ‡",
    },
}
"""Clause → case, or a pattern of cases (design, then what the clause tells apart) → which design
does what wrong."""


def cases(clause: str, names: Iterable[tuple[str, ...]]) -> pytest.MarkDecorator:
    """The parametrisation of a clause's test: ``design`` and whatever it tells apart (``what``).

    Args:
        clause: a key of ``FALLS_SHORT``, or a clause that all designs keep.
        names: the design, and what else there is of a case.
    """
    several = [*names]
    listed = FALLS_SHORT.get(clause, {})
    ids = ["-".join(name) for name in several]
    for pattern in listed:
        assert any(fnmatch(each, pattern) for each in ids), f"{clause}: no case is {pattern}"
    columns = ("design", "what", "how")[: max(map(len, several))]
    return pytest.mark.parametrize(
        columns,
        [
            pytest.param(*name, id=i, marks=_marks(listed, i))
            for name, i in zip(several, ids, strict=True)
        ],
    )


def _marks(listed: Mapping[str, str], name: str) -> list[pytest.MarkDecorator]:
    reasons = [reason for pattern, reason in listed.items() if fnmatch(name, pattern)]
    return [pytest.mark.xfail(strict=True, raises=AssertionError, reason=r) for r in reasons[:1]]
