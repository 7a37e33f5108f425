"""What a study says of its selectors of sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.present.view import View
from tasktransfer.tables.regret import GROUP, LEADING, sentence


def leading(view: View) -> pd.DataFrame:
    """The rows of the measure that selectors are compared by."""
    rows = view["regret"]
    return rows[(rows["measure"] == LEADING) & rows["value"].notna()]


def sentences(regret: pd.DataFrame) -> list[str]:
    """What the intervals bear, a sentence for each dataset, model and algorithm."""
    return [
        f"{', '.join(filter(None, map(str, names)))}: {sentence(group)}"
        for names, group in regret.groupby(list(GROUP), sort=False)
    ]


def behind(row: Mapping[str, Any], run: Run) -> bool:
    """Whether a run judges a selector: every transfer of the group, with its baselines."""
    here = row["dataset"] in ("all", run.about.get("dataset"))
    return here and run.model == row["model"] and run.method in (row["algorithm"], BASELINE)
