"""Tables for terminals."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any


def format_table(
    rows: Sequence[Mapping[str, Any]], left: Collection[str] | None = None
) -> list[str]:
    """Format rows with equal keys as aligned lines.

    Floats have three digits, whole numbers have thousands separators, and None is a question mark.
    ``left`` are the left-aligned columns, by default those with texts.
    """
    from tabulate import tabulate  # noqa: PLC0415  # plan and status start without it

    if not rows:
        return []
    if left is None:
        left = [key for key, value in rows[0].items() if isinstance(value, str)]
    # The titles are a row, because tabulate separates headers by more space.
    lines = [list(rows[0]), *([_format_cell(value) for value in row.values()] for row in rows)]
    align = ["left" if key in left else "right" for key in rows[0]]
    table = tabulate(lines, tablefmt="plain", disable_numparse=True, colalign=align)
    return str(table).splitlines()


def _format_cell(value: Any) -> str:
    if value is None:
        return "?"
    if isinstance(value, float):
        return f"{value:.3f}" if value < 1 else f"{value:,.{2 if value < 10 else 0}f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
