"""A paper's values beside a study's own: the one join, and the one rule.

They never stand beside numbers of generated dialogues, which no paper had. They stand beside a
number over the same members (sets, tasks, pairs, probes) only; elsewhere is ‡, and a note says what
differs. Where data are cut or inputs replaced, the setting is another, and no difference is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.present.marks import setting
from tasktransfer.present.published_columns import DIFFERENCE, DIFFERS, PUBLISHED
from tasktransfer.tables.metadata import Metadata
from tasktransfer.tables.numbers import OTHERWISE, absent

Names = Callable[[Mapping[str, Any]], Any]
"""A row of ours → what the paper calls it in a column; None: it has no such."""


@dataclass(frozen=True)
class Published:
    """Values of a paper, and how its rows are found.

    Args:
        values: the paper's table.
        column: the number in it.
        keys: its columns → a row of ours → the name in that column.
        differs: a row of ours → in what its members are others than the paper's; empty: in nothing.
        signed: whether ours minus theirs is a number that means something.
    """

    values: pd.DataFrame
    column: str
    keys: Mapping[str, Names]
    differs: Callable[[Mapping[str, Any]], str] = lambda row: ""
    signed: bool = True

    def of(self, row: Mapping[str, Any]) -> Any:
        """What the paper has for a row: a number or a text; NaN where it has none, or several."""
        found = self.values
        for key, name in self.keys.items():
            wanted = name(row)
            if wanted is None:
                return np.nan
            found = found[found[key] == wanted]
        return found[self.column].iloc[0] if len(found) == 1 else np.nan


def beside(
    frame: pd.DataFrame,
    published: Published,
    metadata: Metadata,
    *,
    value: str = "value",
    suffix: str = "",
) -> pd.DataFrame:
    """A table with a paper's values: columns ``published``, ``difference`` and ``differs``.

    Args:
        frame: ours, with a column ``dataset`` where some datasets alone are generated.
        value: our number.
        suffix: behind the names of the columns, where a table has several of them.

    Returns:
        The frame with the columns: NaN where nothing may stand, and ``differs`` the reason where
        the paper has a value over other members. Without a row that has either, the frame itself.
    """
    rows = [{str(key): cell for key, cell in row.items()} for row in frame.to_dict("records")]
    theirs, why = [], []
    for row in rows:
        dataset = row.get("dataset")
        generated = metadata.is_synthetic(dataset) if dataset else metadata.synthetic
        number_of_paper = np.nan if generated else published.of(row)
        reason = "" if absent(number_of_paper) else published.differs(row)
        theirs.append(np.nan if reason else number_of_paper)
        why.append(reason)
    if not any(why) and np.isnan(theirs).all():
        return frame
    difference = frame[value] - np.array(theirs, np.float64)
    if setting(metadata) or not published.signed:
        difference = difference * np.nan
    columns: dict[str, Any] = {PUBLISHED: theirs, DIFFERENCE: difference, DIFFERS: why}
    named = {f"{name}{suffix}": cells for name, cells in columns.items()}
    if difference.isna().all():
        del named[f"{DIFFERENCE}{suffix}"]
    return frame.assign(**named)


def notes_of(frame: pd.DataFrame, metadata: Metadata, paper: str) -> list[str]:
    """What is to be known of a table's published values; nothing where it has none.

    Args:
        paper: where they are from, "Table 3 of Parthasarathi et al.".
    """
    shown = [str(name) for name in frame if str(name).startswith(PUBLISHED)]
    reasons = [str(name) for name in frame if str(name).startswith(DIFFERS)]
    told = []
    if shown and frame[shown].notna().any(axis=None):
        other = setting(metadata)
        told.append(
            f"Published: {paper}."
            + (f" Another setting: {other}; no difference is told." if other else "")
        )
    why = list(dict.fromkeys(text for name in reasons for text in frame[name] if text))
    if why:
        more = f"; and {len(why) - 3} more" if len(why) > 3 else ""
        told.append(f"{OTHERWISE} Published over others: {'; '.join(why[:3])}{more}.")
    return told
