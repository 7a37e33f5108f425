"""Find the differences of two Parquet tables: columns, rows and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_float_dtype, is_numeric_dtype

SHOWN = 5
"""Number of examples printed per kind of difference."""
DIGITS = 12
"""Significant digits of numbers in a list, which belongs to the key of its row."""


def compare_tables(
    before: Path,
    after: Path,
    tolerance: float,
    ignored: Sequence[str] = (),
    renamed: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the differences of two Parquet tables.

    Rows are joined on all columns that are not of floating point, in any order.

    Args:
        before: first file.
        after: second file.
        tolerance: largest difference of two equal numbers: absolute, and relative above 1.
        ignored: parts of the names of columns that are left out.
        renamed: column of the first file → its name in the second.
    """
    frames = [
        _read_table(before, ignored).rename(columns=dict(renamed or {})),
        _read_table(after, ignored),
    ]
    names = [frame.columns for frame in frames]
    lines = [f"column {name}: only before" for name in names[0].difference(names[1])]
    lines += [f"column {name}: only after" for name in names[1].difference(names[0])]
    shared = [name for name in names[0] if name in names[1]]
    numbers = [name for name in shared if _is_measured(*(frame[name] for frame in frames))]
    keys = [name for name in shared if name not in numbers]
    if not shared:
        return lines + _compare_lengths(*frames)
    numbered = [_number_rows(frame, keys, numbers) for frame in frames]
    joined = numbered[0].merge(
        numbered[1], on=[*keys, "_nth"], how="outer", suffixes=("", "_after"), indicator="_side"
    )
    for side, word in (("left_only", "before"), ("right_only", "after")):
        rows = joined[joined["_side"] == side]
        if len(rows):
            examples = "; ".join(_describe_row(row, keys) for _, row in rows.head(SHOWN).iterrows())
            lines.append(f"{len(rows)} rows only {word}: {examples}")
    both = joined[joined["_side"] == "both"]
    moved = (_describe_changes(both, name, keys, tolerance) for name in numbers)
    return lines + [line for line in moved if line]


def _read_table(file: Path, ignored: Sequence[str]) -> pd.DataFrame:
    frame = pd.read_parquet(file)
    dropped = [name for name in frame.columns if any(part in name for part in ignored)]
    return frame.drop(columns=dropped)


def _is_measured(before: pd.Series, after: pd.Series) -> bool:
    """Return whether a column has floats in one table, and numbers or no values in the other."""
    columns = (before, after)
    numeric = [is_numeric_dtype(values) and not is_bool_dtype(values) for values in columns]
    empty = [values.isna().all() for values in columns]
    floats = any(is_float_dtype(values) for values in columns)
    return floats and all(a or b for a, b in zip(numeric, empty, strict=True))


def _compare_lengths(before: pd.DataFrame, after: pd.DataFrame) -> list[str]:
    same_length = len(before) == len(after)
    return [] if same_length else [f"{len(before)} rows before, {len(after)} after"]


def _number_rows(frame: pd.DataFrame, keys: list[str], numbers: list[str]) -> pd.DataFrame:
    """Convert keys to text, and number rows with the same keys in the order of their numbers."""
    columns = {name: frame[name].map(_to_text, na_action=None).astype(object) for name in keys}
    columns |= {name: pd.to_numeric(frame[name]).astype(float) for name in numbers}
    converted = pd.DataFrame(columns)
    if numbers:
        converted = converted.sort_values(numbers, kind="stable")
    nth = converted.groupby(keys, sort=False).cumcount() if keys else np.arange(len(converted))
    return converted.assign(_nth=nth)


def _to_text(value: object) -> str:
    if isinstance(value, np.ndarray | list | tuple):
        return f"[{', '.join(_to_text(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_to_text(item)}' for key, item in value.items())}}}"
    if value is None or value is pd.NA or value is pd.NaT or value != value:  # noqa: PLR0124
        return ""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, float | int | np.number):
        return f"{value:.{DIGITS}g}" if abs(value) < 10**DIGITS else str(value)
    return str(value)


def _describe_row(row: pd.Series, keys: list[str]) -> str:
    return " ".join(str(row[name]) for name in keys)[:120]


def _describe_changes(both: pd.DataFrame, name: str, keys: list[str], tolerance: float) -> str:
    """Describe the differences in a column of numbers, if there are any."""
    before, after = both[name], both[f"{name}_after"]
    apart = (before - after).abs()
    size = np.maximum(before.abs(), after.abs()).clip(lower=1)
    differs = (apart > tolerance * size) | (before.isna() != after.isna())
    if not differs.any():
        return ""
    rows = both[differs].head(SHOWN)
    examples = "; ".join(
        f"{_describe_row(row, keys)}: {row[name]:.6g} -> {row[f'{name}_after']:.6g}"
        for _, row in rows.iterrows()
    )
    return f"column {name}: {differs.sum()} of {len(both)} differ, by {apart.max():.3g}: {examples}"
