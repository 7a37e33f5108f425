"""Report text on the source selectors of a study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.present.view import View
from tasktransfer.selection.regret import GROUP, LEADING, describe_significance


def leading(view: View) -> pd.DataFrame:
    """Return the rows of the measure by which selectors are compared."""
    rows = view["regret"]
    return rows[(rows["measure"] == LEADING) & rows["value"].notna()]


def sentences(regret: pd.DataFrame) -> list[str]:
    """Return what the intervals support, one sentence per dataset, model and algorithm."""
    return [
        f"{', '.join(filter(None, map(str, names)))}: {describe_significance(group)}"
        for names, group in regret.groupby(list(GROUP), sort=False)
    ]


def behind(row: Mapping[str, Any], run: Run) -> bool:
    """Return whether a run evaluates a selector: the group's transfer runs and their baselines."""
    here = row["dataset"] in ("all", run.about.get("dataset"))
    return here and run.model == row["model"] and run.method in (row["algorithm"], BASELINE)
