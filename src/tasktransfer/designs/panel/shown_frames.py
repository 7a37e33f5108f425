"""Printed tables with the rows of one frame: prompted models, training pairs, and leaks."""

from __future__ import annotations

from tasktransfer.designs.panel import source_runs
from tasktransfer.designs.panel.frames import has_prompted
from tasktransfer.designs.panel.shown_columns import has_trainings, show_all_if_empty
from tasktransfer.present.columns import make_number_column, make_text_column
from tasktransfer.present.declared import FlatTable, Table

PROMPTED_TABLE = Table(
    "prompted",
    "Prompted models by template",
    lambda frames: frames["prompted"],
    FlatTable(
        (
            make_text_column("method", "Model"),
            make_text_column("set", "Rated set"),
            make_number_column("template", "Template", "d"),
            make_number_column("value", "Correlation", ".1f"),
            make_number_column("mean", "Mean rating", ".2f"),
            make_number_column("items", "Items", ",d"),
            make_number_column("unreadable", "Unreadable %", ".1f"),
            make_number_column("tokens", "Tokens", ",d"),
            make_number_column("seconds", "Seconds", ",.0f"),
            make_text_column("test_data_seen", "Test data seen"),
        )
    ),
    keys=("method", "set", "template"),
    notes=lambda frames, frame: [
        "A prompted model's rating is the mean over its templates. Do not select a template by "
        "these test scores.",
    ],
    section="cost",
    planned=has_prompted,
    runs=lambda row, run: run.method == row["method"],
)
PAIRS_TABLE = Table(
    "pairs",
    "Training pairs",
    lambda frames: frames["pairs"],
    FlatTable(
        (
            make_text_column("data", "Data"),
            make_text_column("domain", "Domain"),
            make_text_column("split", "Split"),
            make_text_column("how", "Origin of the response", show_all_if_empty),
            make_number_column("made", "Built", ",d"),
            make_number_column("kept", "Kept", ",d"),
            make_number_column("relabelled", "Relabelled", ",d"),
            make_number_column("requested", "Requested", ",d"),
            make_number_column("pairs", "After balancing", ",d"),
        ),
        blocks="domain",
    ),
    keys=("data", "domain", "split", "how"),
    section="made",
    folded=True,
    planned=has_trainings,
    runs=source_runs.is_never_source,
)
LEAKS_TABLE = Table(
    "leaks",
    "Leaks",
    lambda frames: frames["leaks"],
    FlatTable(
        (
            make_text_column("corpus", "Corpus"),
            make_text_column("split", "Split", show_all_if_empty),
            make_text_column("set", "Rated set", show_all_if_empty),
            make_number_column("dialogues", "Dialogues", ",d"),
            make_number_column("kept", "Without leaks", ",d"),
            make_number_column("items", "Leaked items", ",d"),
            make_text_column(
                "dropped", "Leaks dropped", {"True": "yes", "False": "no"}.__getitem__
            ),
        ),
        blocks="corpus",
    ),
    keys=("corpus", "split", "set"),
    section="made",
    folded=True,
    planned=has_trainings,
    runs=source_runs.is_never_source,
)
