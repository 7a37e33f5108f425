"""Report parts of a transfer study in addition to its declared tables and figures.

These are the interactive heatmap, the statistics, the controls and the list of missing runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
from markupsafe import Markup

from tasktransfer.designs.transfer import outputs
from tasktransfer.designs.transfer.collect.results import (
    Results,
    frames_in,
    read_results,
    results_of,
)
from tasktransfer.designs.transfer.config import transfer_config
from tasktransfer.designs.transfer.racing import LEFT_LABEL, NO_INTERVAL
from tasktransfer.designs.transfer.report.control_tables import control_tables
from tasktransfer.designs.transfer.report.grid import payload
from tasktransfer.designs.transfer.report.selection import sentences
from tasktransfer.designs.transfer.report.statistics_tables import (
    agreement_lines,
    statistics_tables,
)
from tasktransfer.designs.transfer.statistics.mixing import MIXING
from tasktransfer.designs.transfer.tables.names import get_algorithm_label
from tasktransfer.present.columns import Column, long_text, number, text
from tasktransfer.present.declared import Block
from tasktransfer.present.html import create_environment
from tasktransfer.present.kit import matrix
from tasktransfer.present.page.text import escape_json
from tasktransfer.present.view import View
from tasktransfer.results.common_frames import RESOURCES
from tasktransfer.results.metadata import Metadata
from tasktransfer.results.store import read_frame
from tasktransfer.results.study import Study
from tasktransfer.selection.regret import COLUMNS as REGRET

HERE = Path(__file__).parent
LABELS = {
    "significant": matrix.SURVIVES_LABEL,
    "one_training": matrix.ONE_TRAINING_LABEL,
    "missing": matrix.MISSING_LABEL,
    "not_planned": matrix.NOT_PLANNED_LABEL,
    "left_race": LEFT_LABEL,
}
"""Labels of the marks, identical in the printed and the interactive heatmap."""


def read(study: Study) -> tuple[Mapping[str, pd.DataFrame], Metadata]:
    """Read every table of the study."""
    results = read_results(study.tables)
    remedy = f"run `tasktransfer collect {study.arguments()}` again"
    resources, _ = read_frame(Path(study.tables, "resources.parquet"), RESOURCES, remedy)
    frames = {**frames_in(results), "resources": resources}
    config = transfer_config(study)
    more = {
        "regret": (REGRET, bool(config.selectors)),
        outputs.MIXING: (MIXING, config.multi_source.mixes),
    }
    for name, (columns, there) in more.items():
        if there:
            path = Path(study.tables, f"{name}.parquet")
            frames[name], _ = read_frame(path, columns, "run `tasktransfer statistics` again")
    return frames, results.metadata


def blocks(view: View) -> Mapping[str, Sequence[Block]]:
    """Return the blocks by section: the heatmap in results, statistics and controls in ``sure``."""
    results = results_of(view)
    tables = [*statistics_tables(results.statistics), *control_tables(results)]
    return {
        "results": [_build_heatmap(view, results)],
        "sure": [
            *(Block(text=line) for line in (sentences(view["regret"]) if "regret" in view else ())),
            *(Block(text=line) for line in agreement_lines(results.statistics.agreement)),
            *(Block(table=table) for table in tables),
        ],
    }


def _build_heatmap(view: View, results: Results) -> Block:
    """Return the interactive heatmap, or a line if the study trains no model."""
    if results.tables.runs.empty and results.tables.missing.empty:
        return Block(text="Heatmap: the study trains no model.")
    explain = " ".join(part for part in ("tasktransfer explain", view.study.arguments()) if part)
    heatmap = create_environment(HERE).get_template("heatmap.html.j2")
    raced = bool((results.statistics.cells["no_interval"] == NO_INTERVAL).any())
    html = heatmap.render(labels=LABELS, raced=raced, data=escape_json(payload(results, explain)))
    return Block(html=Markup(html))


def missing(view: View) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return all missing nodes (algorithms' runs, controls' runs, others) and damaged records."""
    frames = [view[name] for name in ("missing", "control_missing", "other_missing")]
    return pd.concat(frames, ignore_index=True), view["problems"]


def missing_columns(runs: pd.DataFrame) -> list[Column]:
    """Return the columns that describe a missing run."""
    return [
        text("dataset", "Dataset"),
        text("model", "Model"),
        text("algorithm", "Algorithm", get_algorithm_label),
        text("source", "Source", lambda joined: joined.replace("+", " + ")),
        text("target", "Target"),
        number("seed", "Seed", "d"),
        long_text("reason", "Why"),
        long_text("stage", "Training"),
    ]
