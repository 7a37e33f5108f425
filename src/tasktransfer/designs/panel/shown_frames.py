"""Printed tables with the rows of one frame: prompted models, training pairs, and leaks."""

from __future__ import annotations

from tasktransfer.designs.panel import behind
from tasktransfer.designs.panel.frames import has_prompted
from tasktransfer.designs.panel.shown_columns import has_trainings, show_all_if_empty
from tasktransfer.present.columns import number, text
from tasktransfer.present.declared import Listed, Table

PROMPTED_TABLE = Table(
    "prompted",
    "Prompted models by template",
    lambda frames: frames["prompted"],
    Listed(
        (
            text("method", "Model"),
            text("set", "Rated set"),
            number("template", "Template", "d"),
            number("value", "Correlation", ".1f"),
            number("mean", "Mean rating", ".2f"),
            number("items", "Items", ",d"),
            number("unreadable", "Unreadable %", ".1f"),
            number("tokens", "Tokens", ",d"),
            number("seconds", "Seconds", ",.0f"),
            text("test_data_seen", "Test data seen"),
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
    Listed(
        (
            text("data", "Data"),
            text("domain", "Domain"),
            text("split", "Split"),
            text("how", "Origin of the response", show_all_if_empty),
            number("made", "Built", ",d"),
            number("kept", "Kept", ",d"),
            number("relabelled", "Relabelled", ",d"),
            number("asked", "Requested", ",d"),
            number("pairs", "After balancing", ",d"),
        ),
        blocks="domain",
    ),
    keys=("data", "domain", "split", "how"),
    section="made",
    folded=True,
    planned=has_trainings,
    runs=behind.is_never_behind,
)
LEAKS_TABLE = Table(
    "leaks",
    "Leaks",
    lambda frames: frames["leaks"],
    Listed(
        (
            text("corpus", "Corpus"),
            text("split", "Split", show_all_if_empty),
            text("set", "Rated set", show_all_if_empty),
            number("dialogues", "Dialogues", ",d"),
            number("kept", "Without leaks", ",d"),
            number("items", "Leaked items", ",d"),
            text("dropped", "Leaks dropped", {"True": "yes", "False": "no"}.__getitem__),
        ),
        blocks="corpus",
    ),
    keys=("corpus", "split", "set"),
    section="made",
    folded=True,
    planned=has_trainings,
    runs=behind.is_never_behind,
)
