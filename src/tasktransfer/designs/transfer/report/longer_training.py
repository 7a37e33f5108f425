"""Sentences that compare multitask → fine-tune with a baseline that trains as long."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from tasktransfer.designs.transfer.controls import LONGER_BASELINE
from tasktransfer.designs.transfer.tables.names import get_algorithm_label
from tasktransfer.present.numbers import DIFFERENCES
from tasktransfer.present.sentences import MOST_Q, format_value_with_interval

LONGER_ALGORITHM = "multitask_finetune"
"""Algorithm that trains on the target in both of its steps."""


def describe_longer_training(controlled: pd.DataFrame, means: pd.DataFrame) -> Iterator[str]:
    """Yield the mean effect in comparison with ``longer_baseline``, or a warning if it is unknown.

    The warning is for studies whose mean effect over the baseline is significantly positive.

    Args:
        controlled: columns of ``columns.CONTROL_SUMMARY``; no rows if the study has no controls.
        means: columns of ``columns.SUMMARY``.
    """
    label = get_algorithm_label(LONGER_ALGORITHM)
    of_algorithm = controlled[controlled["algorithm"] == LONGER_ALGORITHM]
    over_longer = of_algorithm[of_algorithm["control"] == LONGER_BASELINE]
    table = over_longer[over_longer["low"].notna()]
    for row in table.to_dict("records"):
        size = format_value_with_interval(row["mean"], row["low"], row["high"], "+.2f", DIFFERENCES)
        is_significant = row["q"] <= MOST_Q
        yield (
            f"{label} trains on its target about twice as long as the baseline. Over a baseline "
            f"trained for twice the updates (longer_baseline), its mean effect with {row['model']} "
            f"on {row['dataset']} is {size} points over {row['n_pairs']} pairs, "
            f"{'significantly different' if is_significant else 'not significantly different'} "
            "from 0."
        )
    if len(table):
        return
    gains = means[(means["algorithm"] == LONGER_ALGORITHM) & (means["mean"] > 0)]
    if (gains["joint_q"] <= MOST_Q).any():
        yield (
            f"{label} trains on its target about twice as long as the baseline, and this study has "
            "no baseline that is trained equally long (controls: [longer_baseline]). The mean "
            "gain may therefore come from longer training only."
        )
