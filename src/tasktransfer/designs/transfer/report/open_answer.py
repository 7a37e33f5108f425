"""The part of the answer that the page shows without a click, after the answer's first sentence.

It has the algorithms' mean changes of the score, and the baselines that have not learned.
"""

from __future__ import annotations

import pandas as pd
from markupsafe import Markup

from tasktransfer.core.references import MOST_FREQUENT
from tasktransfer.designs.transfer.report.answer import select_own_targets
from tasktransfer.designs.transfer.report.average_changes import build_changes_table
from tasktransfer.designs.transfer.report.first_source import FEW_TARGETS
from tasktransfer.designs.transfer.report.learned import (
    compare_with_best_reference,
    describe_unlearned_list,
)
from tasktransfer.designs.transfer.report.without_transfer import has_transfer
from tasktransfer.present.declared import Block
from tasktransfer.results.frames import Frames

NEXT_STEPS = Markup(
    "Next: <code>tasktransfer export-model {0} --out model</code> exports the recommended method, "
    "and <code>tasktransfer predict model new.jsonl</code> labels new dialogues. If the intervals "
    "are too wide to decide, label more dialogues: <code>tasktransfer learning-curve {0}</code> "
    "estimates the gain."
)


def build_open_answer(frames: Frames) -> list[Block]:
    """Return the blocks that the report shows unfolded below its answer.

    A study of one or two targets has no table of algorithms, because its answer is about sources.
    """
    compared = compare_with_best_reference(frames)
    has_sources = has_transfer(frames["transfer_runs"], frames["missing_runs"])
    sentences = describe_unlearned_list(compared, has_sources=has_sources)
    changes = build_changes_table(frames["summary"]) if _has_many_targets(frames["cells"]) else None
    return [
        *([Block(table=changes)] if changes else []),
        *_list_next_steps(frames),
        *(Block(text=sentence) for sentence in sentences),
    ]


def _list_next_steps(frames: Frames) -> list[Block]:
    """Return a block with the next commands if a method is recommended for the user's own task."""
    methods = select_own_targets(frames)
    useful = methods[methods["recommended"] & (methods["method"] != MOST_FREQUENT)]
    if useful.empty:
        return []
    places = useful[["dataset", "target"]].drop_duplicates().to_dict("records")
    arguments = frames.study.format_arguments()
    if len(places) > 1:
        arguments = f"{arguments} --task {places[0]['dataset']}/{places[0]['target']}"
    return [Block(text=NEXT_STEPS.format(arguments))]


def _has_many_targets(cells: pd.DataFrame) -> bool:
    singles = cells[(cells["n_sources"] == 1) & cells["delta"].notna()]
    return len(singles[["dataset", "target"]].drop_duplicates()) > FEW_TARGETS
