"""The part of the answer that the page shows without a click, after the answer's first sentence.

It has the algorithms' mean changes of the score, and the baselines that have not learned.
"""

from __future__ import annotations

import pandas as pd
from markupsafe import Markup

from tasktransfer.core.references import COMPUTED_LABELS, MOST_FREQUENT, REFERENCES, STATES
from tasktransfer.designs.transfer.report.answer import select_own_targets
from tasktransfer.designs.transfer.report.average_changes import build_changes_table
from tasktransfer.designs.transfer.report.first_source import FEW_TARGETS
from tasktransfer.designs.transfer.report.learned import (
    MOST_SCORES,
    TABLE_TITLE,
    compare_with_best_reference,
    describe_unlearned_list,
    select_unlearned_baselines,
)
from tasktransfer.designs.transfer.report.without_transfer import has_transfer
from tasktransfer.designs.transfer.tables.names import format_task_name
from tasktransfer.present.columns import (
    make_estimate_column,
    make_number_column,
    make_p_value_column,
    make_text_column,
)
from tasktransfer.present.declared import Block
from tasktransfer.present.html import HtmlTable, build_table
from tasktransfer.present.numbers import DIFFERENCES
from tasktransfer.results.frames import Frames

NEXT_STEPS = Markup(
    "Next: <code>tasktransfer export-model {0} --out model</code> exports the recommended method, "
    "and <code>tasktransfer predict model new.jsonl</code> labels new dialogues. If the intervals "
    "are too wide to decide, label more dialogues: <code>tasktransfer learning-curve {0}</code> "
    "estimates the gain."
)
_LABELS = {**COMPUTED_LABELS, **REFERENCES}


def build_open_answer(frames: Frames) -> list[Block]:
    """Return the blocks that the report shows unfolded below its answer.

    A study of one or two targets has no table of algorithms, because its answer is about sources.
    """
    compared = compare_with_best_reference(frames)
    has_sources = has_transfer(frames["transfer_runs"], frames["missing_runs"])
    sentences = describe_unlearned_list(compared, has_sources=has_sources)
    changes = build_changes_table(frames["summary"]) if _has_many_targets(frames["cells"]) else None
    unlearned = build_unlearned_table(compared)
    return [
        *([Block(table=changes)] if changes else []),
        *_list_next_steps(frames),
        *(Block(text=sentence) for sentence in sentences),
        *([Block(table=unlearned)] if unlearned else []),
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


def build_unlearned_table(compared: pd.DataFrame) -> HtmlTable | None:
    """Return a folded table of baselines that have not learned, the lowest difference first.

    It is None for at most ``MOST_SCORES`` of them, whose scores are in a sentence of the answer.

    Args:
        compared: result of ``learned.compare_with_best_reference``.
    """
    rows = select_unlearned_baselines(compared)
    if len(rows) <= MOST_SCORES:
        return None
    has_intervals = "delta" in rows
    names = [make_text_column("dataset", "Dataset")]
    if compared["model"].nunique() > 1:
        names.append(make_text_column("model", "Model"))
    names.append(make_text_column("target", "Target", format_task_name))
    caption = (
        "Scores from 0 to 100. The difference is the baseline's mean score minus the score of the "
        "best simple reference, in points"
    )
    return build_table(
        "unlearned",
        TABLE_TITLE,
        f"{caption}, with its 95 % interval." if has_intervals else f"{caption}.",
        rows,
        (
            *names,
            make_number_column("score", "Baseline's score", ".1f"),
            make_text_column("reference", "Best reference", _LABELS.__getitem__),
            make_number_column("reference_score", "Reference's score", ".1f"),
            make_estimate_column(
                "delta" if has_intervals else "difference",
                "Difference, points",
                "+.1f",
                bounds=DIFFERENCES,
            ),
            *([make_p_value_column("q", "q")] if "q" in rows else []),
            make_text_column("state", "Baseline", STATES.__getitem__),
        ),
        keys=len(names),
        folded=True,
    )
