"""Check that printed intervals end where the scale of their quantity does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tasktransfer.present.tables import AbsentOutput, PrintedTable

_NUMBER = r"[+−]?[\d,]*\.?\d+"
_ESTIMATE = re.compile(rf"({_NUMBER}) \[({_NUMBER}), ({_NUMBER})\]")
_INTERVAL = re.compile(rf"^({_NUMBER}) to ({_NUMBER})$")
WITHOUT_END = ("PPL",)
"""Heads of columns of quantities without an upper end."""


def list_intervals(
    tables: Iterable[PrintedTable | AbsentOutput],
) -> Iterator[tuple[str, str, str, float, float]]:
    """Yield table, column, value (empty without one), low and high of every printed interval."""
    for table in tables:
        if isinstance(table, AbsentOutput):
            continue
        lines = [line for block in table.layout.blocks for entry in block for line in entry]
        for line in lines:
            for head, cell in zip(table.layout.head, line, strict=True):
                for value, low, high in _ESTIMATE.findall(cell):
                    yield table.name, head, value, _read(low), _read(high)
                for low, high in _INTERVAL.findall(cell):
                    yield table.name, head, "", _read(low), _read(high)


def list_wrong_intervals(
    tables: Iterable[PrintedTable | AbsentOutput], *, correlations: bool = False
) -> list[tuple[str, str, str, float, float]]:
    """Return the intervals that leave their scale: 0 to 100, or −100 to 100 with a sign.

    A difference of two differences or of two correlations may be twice as large. Values without a
    sign may be negative in tables of ``correlations``.
    """
    return [
        interval
        for interval in list_intervals(tables)
        if not _is_within(*interval, correlations=correlations)
    ]


def _is_within(
    table: str, head: str, value: str, low: float, high: float, *, correlations: bool
) -> bool:
    if any(word in head for word in WITHOUT_END):
        return low >= 0
    end = 200 if table == "asymmetry" or correlations else 100
    least = 0 if value and value[0] not in "+−" and not correlations else -end
    return bool(least <= low <= high <= end)


def _read(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))
