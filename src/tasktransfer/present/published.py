"""The join of a paper's values with a study's own values.

Published values are never shown next to numbers from synthetic dialogues. They are shown only next
to a number over the same members (sets, tasks, pairs, probes); otherwise the cell has ‡, and a note
describes the difference. If data are subsampled or inputs replaced, no difference is computed,
because the setting is not the paper's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.present.columns import DIFFERENCE, DIFFERS, PUBLISHED
from tasktransfer.present.marks import describe_setting_differences
from tasktransfer.present.numbers import OTHERWISE, is_missing
from tasktransfer.results.store import Metadata

Names = Callable[[Mapping[str, Any]], Any]
"""A row of ours → its name in a column of the paper; None if the paper does not have it."""


@dataclass(frozen=True)
class PublishedValues:
    """Values of a paper, and the keys that find its rows.

    Args:
        values: the paper's table.
        column: column of the number.
        keys: column of the paper's table → function from a row of ours to the name in that column.
        differs: a row of ours → description of how its members differ from the paper's; empty if
            they do not.
        signed: true if the difference ours - theirs is meaningful.
    """

    values: pd.DataFrame
    column: str
    keys: Mapping[str, Names]
    differs: Callable[[Mapping[str, Any]], str] = lambda row: ""
    signed: bool = True

    def get_value(self, row: Mapping[str, Any]) -> Any:
        """Return the paper's value for a row, as a number or text.

        NaN if the paper has no value, or several.
        """
        found = self.values
        for key, name in self.keys.items():
            wanted = name(row)
            if wanted is None:
                return np.nan
            found = found[found[key] == wanted]
        return found[self.column].iloc[0] if len(found) == 1 else np.nan


def add_published_columns(
    frame: pd.DataFrame,
    published: PublishedValues,
    metadata: Metadata,
    *,
    value: str = "value",
    suffix: str = "",
) -> pd.DataFrame:
    """Add columns with a paper's values, their difference from ours, and differing members.

    Args:
        frame: our table, with a column ``dataset`` if only some datasets are synthetic.
        published: the paper's values.
        metadata: metadata of the study.
        value: column of our number.
        suffix: suffix of the new columns' names, for tables with several published columns.

    Returns:
        The frame with the new columns. ``published`` and ``difference`` are NaN if no value may be
        shown, and ``differs`` is the reason if the paper's value is over other members. If no row
        has a value or a reason, the frame is returned unchanged.
    """
    rows = [{str(key): cell for key, cell in row.items()} for row in frame.to_dict("records")]
    theirs, why = [], []
    for row in rows:
        dataset = row.get("dataset")
        generated = metadata.is_synthetic(dataset) if dataset else metadata.synthetic
        number_of_paper = np.nan if generated else published.get_value(row)
        reason = "" if is_missing(number_of_paper) else published.differs(row)
        theirs.append(np.nan if reason else number_of_paper)
        why.append(reason)
    if not any(why) and np.isnan(theirs).all():
        return frame
    difference = frame[value] - np.array(theirs, np.float64)
    if describe_setting_differences(metadata) or not published.signed:
        difference = difference * np.nan
    columns: dict[str, Any] = {PUBLISHED: theirs, DIFFERENCE: difference, DIFFERS: why}
    named = {f"{name}{suffix}": cells for name, cells in columns.items()}
    if difference.isna().all():
        del named[f"{DIFFERENCE}{suffix}"]
    return frame.assign(**named)


def list_published_notes(frame: pd.DataFrame, metadata: Metadata, paper: str) -> list[str]:
    """Return the notes on a table's published values, if there are any.

    Args:
        frame: the table, after ``add_published_columns``.
        metadata: metadata of the study.
        paper: source of the values, for example "Table 3 of Parthasarathi et al.".
    """
    shown = [str(name) for name in frame if str(name).startswith(PUBLISHED)]
    reasons = [str(name) for name in frame if str(name).startswith(DIFFERS)]
    notes = []
    if shown and frame[shown].notna().any(axis=None):
        other = describe_setting_differences(metadata)
        notes.append(
            f"Published: {paper}."
            + (f" No differences are shown, because this study has {other}." if other else "")
        )
    why = list(dict.fromkeys(text for name in reasons for text in frame[name] if text))
    if why:
        more = f"; and {len(why) - 3} more" if len(why) > 3 else ""
        notes.append(f"{OTHERWISE} Published value not comparable: {'; '.join(why[:3])}{more}.")
    return notes
