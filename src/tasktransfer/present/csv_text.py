"""CSV of frames, protected against formulas in spreadsheets.

A spreadsheet treats a cell that begins with ``=``, ``+``, ``-`` or ``@`` as a formula, which may
start programs or send the table elsewhere. Names and labels come from other people's datasets,
models and archives, so such texts get a leading apostrophe. Numbers stay numbers. Archives of the
FETA challenge do not use this module, because their format requires unchanged answers.
"""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
from pandas.api.types import is_object_dtype, is_string_dtype

_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
"""Full-width signs also begin formulas in Chinese, Japanese and Korean spreadsheets."""
_NUMBER = re.compile(r"[+-]?(\d[\d,]*\.?\d*|\.\d+)([eE][+-]?\d+)?")


def to_csv(frame: pd.DataFrame, *, float_format: str | None = None) -> str:
    """Convert a frame to CSV without its index."""
    safe = frame.set_axis([escape_formula(str(name)) for name in frame.columns], axis=1)
    for place in range(safe.shape[1]):
        column = safe.iloc[:, place]
        if isinstance(column.dtype, pd.CategoricalDtype):
            column = column.astype(object)
        if is_object_dtype(column.dtype) or is_string_dtype(column.dtype):
            safe.isetitem(place, list(map(escape_formula, column)))
    return str(safe.to_csv(index=False, lineterminator="\n", float_format=float_format))


def escape_formula(value: Any) -> Any:
    """Prefix a text with an apostrophe if a spreadsheet would run it as a formula.

    Its line breaks become line feeds. Values that are not texts are returned unchanged.
    """
    if not isinstance(value, str):
        return value
    # A carriage return alone would end the line: Python's csv does not quote it.
    text = value.replace("\r\n", "\n").replace("\r", "\n")
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text
