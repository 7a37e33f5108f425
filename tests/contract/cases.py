"""How a clause of the contract is asked of each design."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def cases(names: Iterable[tuple[str, ...]]) -> pytest.MarkDecorator:
    """The parametrisation of a clause's test: ``design`` and whatever it tells apart (``what``).

    Args:
        names: the design, and what else there is of a case.
    """
    several = [*names]
    columns = ("design", "what", "how")[: max(map(len, several))]
    return pytest.mark.parametrize(
        columns, [pytest.param(*name, id="-".join(name)) for name in several]
    )
