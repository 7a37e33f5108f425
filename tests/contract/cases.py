"""Parametrization of the contract's tests over designs."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def cases(names: Iterable[tuple[str, ...]]) -> pytest.MarkDecorator:
    """Return the parametrization of a clause's test over ``design`` and optional ``what``.

    Args:
        names: the design and the further values of each case.
    """
    several = [*names]
    columns = ("design", "what", "how")[: max(map(len, several))]
    return pytest.mark.parametrize(
        columns, [pytest.param(*name, id="-".join(name)) for name in several]
    )
