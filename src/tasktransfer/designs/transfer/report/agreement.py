"""Sentences on the agreement of transfer matrices."""

from __future__ import annotations

import pandas as pd

from tasktransfer.designs.transfer.statistics.matrices import summarise_agreement
from tasktransfer.errors import format_quantity
from tasktransfer.present.columns import Row
from tasktransfer.present.html import to_records
from tasktransfer.present.numbers import format_score


def describe_agreement(agreement: pd.DataFrame) -> list[str]:
    """Describe whether the study supports the paper's claim that transfer depends on the model.

    There is one sentence per dataset for models, and one for algorithms.
    """
    return [_describe_row(row) for row in to_records(summarise_agreement(agreement))]


def _describe_row(row: Row) -> str:
    mean, low, high = (format_score(row[key]) for key in ("correlation", "lowest", "highest"))
    count, agreeing = row["comparisons"], row["agreeing"]
    return (
        f"On {row['dataset']}, the transfer matrices of two {row['between']}s have a mean rank "
        f"correlation of {mean} ({format_quantity(count, 'comparison')}, from {low} to {high}). "
        f"The number of these correlations that are significantly above 0 is {agreeing} (p ≤ 0.05)."
    )
