"""Report parts of a transfer study in addition to its declared tables and figures.

These are the interactive heatmap, the statistics, the controls and the list of missing runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
from markupsafe import Markup

from tasktransfer.designs.transfer.collect.collect import ALONE
from tasktransfer.designs.transfer.racing import LEFT_LABEL, NO_INTERVAL
from tasktransfer.designs.transfer.report.agreement import describe_agreement
from tasktransfer.designs.transfer.report.grid import payload
from tasktransfer.designs.transfer.report.seed_limit import describe_seed_limit
from tasktransfer.designs.transfer.report.targets import build_targets
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


def blocks(frames: Frames) -> Mapping[str, Sequence[Block]]:
    """Return the heatmap, the blocks by target, and sentences on regret and agreement."""
    lines = [*(describe_groups(frames["regret"]) if "regret" in frames else ())]
    lines += describe_agreement(frames["agreement"])
    targets = build_targets(frames)
    return {
        "matrix": [_build_heatmap(frames)],
        "targets": [Block(html=targets)] if targets else [],
        "sure": [Block(text=line) for line in lines],
    }


def _build_heatmap(frames: Frames) -> Block:
    """Return the interactive heatmap, or a line if the study trains no model."""
    if frames["transfer_runs"].empty and frames["missing_runs"].empty:
        return Block(text="Heatmap: the study trains no model.")
    explain = " ".join(part for part in ("tasktransfer explain", frames.study.arguments()) if part)
    heatmap = create_environment(HERE).get_template("heatmap.html.j2")
    raced = bool((frames["cells"]["no_interval"] == NO_INTERVAL).any())
    html = heatmap.render(
        labels=LABELS,
        raced=raced,
        limit=describe_seed_limit(frames["cells"]),
        data=escape_json(payload(frames, explain)),
    )
    return Block(html=Markup(html))


def list_missing(frames: Frames) -> pd.DataFrame:
    """Return all missing results, and transfer runs whose baseline is missing."""
    missing_runs = frames["missing_runs"]
    alone = missing_runs[missing_runs["state"] == ALONE]
    named = alone.rename(columns={"algorithm": "method", "stage": "node"})
    named = named.assign(sources=alone["source"])
    missing = frames["missing"]
    return pd.concat([missing, named[[name for name in named if name in missing]]])
