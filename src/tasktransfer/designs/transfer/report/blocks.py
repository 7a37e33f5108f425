"""Report parts of a transfer study in addition to its declared tables and figures.

These are the interactive heatmap, the statistics, the controls and the list of missing runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd
from markupsafe import Markup

from tasktransfer.designs.transfer.collect.collect import BASELINE_MISSING
from tasktransfer.designs.transfer.racing import LEFT_LABEL, NO_INTERVAL
from tasktransfer.designs.transfer.report.agreement import describe_agreement
from tasktransfer.designs.transfer.report.grid import build_payload
from tasktransfer.designs.transfer.report.open_answer import build_open_answer
from tasktransfer.designs.transfer.report.seed_limit import describe_seed_limit
from tasktransfer.designs.transfer.report.targets import render_targets
from tasktransfer.designs.transfer.report.without_transfer import has_transfer
from tasktransfer.present.declared import Block
from tasktransfer.present.html import create_environment
from tasktransfer.present.kit import matrix
from tasktransfer.present.page.text import escape_json
from tasktransfer.results.frames import Frames
from tasktransfer.selection.regret import describe_groups

HERE = Path(__file__).parent
LABELS = {
    "significant": matrix.SURVIVES_LABEL,
    "one_training": matrix.ONE_TRAINING_LABEL,
    "missing": matrix.MISSING_LABEL,
    "not_planned": matrix.NOT_PLANNED_LABEL,
    "left_race": LEFT_LABEL,
}
"""Labels of the marks, identical in the printed and the interactive heatmap."""


def build_blocks(frames: Frames) -> Mapping[str, Sequence[Block]]:
    """Map each section of the report to its blocks."""
    regret = describe_groups(frames["regret"]) if "regret" in frames else []
    lines = [*_merge_identical_sentences(regret)]
    lines += describe_agreement(frames["agreement"])
    heatmap, targets = _build_heatmap(frames), render_targets(frames)
    return {
        "answer": build_open_answer(frames),
        "matrix": [heatmap] if heatmap else [],
        "targets": [Block(html=targets)] if targets else [],
        "sure": [Block(text=line) for line in lines],
    }


def _merge_identical_sentences(sentences: Sequence[str]) -> Iterator[str]:
    """Yield sentences ``group: statement``, or a single sentence for identical statements."""
    statements = {sentence.partition(": ")[2] for sentence in sentences}
    if len(sentences) > 1 and len(statements) == 1:
        yield (
            f"{statements.pop()} The result is the same for all {len(sentences)} groups of "
            "dataset, model and algorithm."
        )
    else:
        yield from sentences


def _build_heatmap(frames: Frames) -> Block | None:
    """Return the interactive heatmap, or None for a study without transfer."""
    if not has_transfer(frames["transfer_runs"], frames["missing_runs"]):
        return None
    explain = " ".join(
        part for part in ("tasktransfer explain", frames.study.format_arguments()) if part
    )
    heatmap = create_environment(HERE).get_template("heatmap.html.j2")
    raced = bool((frames["cells"]["no_interval"] == NO_INTERVAL).any())
    html = heatmap.render(
        labels=LABELS,
        raced=raced,
        limit=describe_seed_limit(frames["cells"]),
        data=escape_json(build_payload(frames, explain)),
    )
    return Block(html=Markup(html))


def list_missing_results(frames: Frames) -> pd.DataFrame:
    """Return all missing results, and transfer runs whose baseline is missing."""
    missing_runs = frames["missing_runs"]
    alone = missing_runs[missing_runs["state"] == BASELINE_MISSING]
    named = alone.rename(columns={"algorithm": "method", "stage": "node"})
    named = named.assign(sources=alone["source"])
    missing = frames["missing"]
    return pd.concat([missing, named[[name for name in named if name in missing]]])
