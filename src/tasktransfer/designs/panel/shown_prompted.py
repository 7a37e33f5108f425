"""The printed table of prompted models: correlation and cost of each prompt template."""

from __future__ import annotations

from tasktransfer.designs.panel.frames import has_prompted
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
