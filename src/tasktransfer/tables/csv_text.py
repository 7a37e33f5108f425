"""Frames as CSV that a spreadsheet shows and does not run.

A spreadsheet takes a cell that begins with ``=``, ``+``, ``-`` or ``@`` for a formula, and a
formula may start programs or send the table away. Names and labels come from datasets, models and
archives of others, so a text that begins this way gets an apostrophe before it. Numbers stay
numbers. Archives of the FETA challenge are no tables: their format gives answers as they are.
"""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
from pandas.api.types import is_object_dtype, is_string_dtype

_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
"""The full-width signs are formulas where Chinese, Japanese or Korean is written."""
_NUMBER = re.compile(r"[+-]?(\d[\d,]*\.?\d*|\.\d+)([eE][+-]?\d+)?")


def to_csv(frame: pd.DataFrame, *, float_format: str | None = None) -> str:
    """Return a frame as CSV, without its index."""
    safe = frame.set_axis([as_text(str(name)) for name in frame.columns], axis=1)
    for place in range(safe.shape[1]):
        column = safe.iloc[:, place]
        if isinstance(column.dtype, pd.CategoricalDtype):
            column = column.astype(object)
        if is_object_dtype(column.dtype) or is_string_dtype(column.dtype):
            safe.isetitem(place, list(map(as_text, column)))
    return str(safe.to_csv(index=False, lineterminator="\n", float_format=float_format))


def as_text(value: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula; what is not a text stays."""
    if not isinstance(value, str):
        return value
    # A carriage return alone would end the line: Python's csv does not quote it.
    text = value.replace("\r\n", "\n").replace("\r", "\n")
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text
