"""Printed table of prompted models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasktransfer.core.lazy import LazyPackage
from tasktransfer.designs.empathetic.frames import has_prompted
from tasktransfer.present.columns import make_number_column, make_text_column
from tasktransfer.present.declared import FlatTable, Table

if TYPE_CHECKING:
    from tasktransfer.designs.empathetic import printed
else:
    printed = LazyPackage(__package__).printed

PROMPTED_TABLE = Table(
    "prompted",
    "Prompted models",
    printed.list_prompted,
    FlatTable(
        (
            make_text_column("method", "Model"),
            make_number_column("template", "Template", "d"),
            make_text_column("measure", "Measure"),
            make_number_column("value", "Value", ".2f"),
            make_number_column("instances", "Contexts", ",d"),
            make_number_column("unreadable", "Unreadable %", ".1f"),
            make_number_column("tokens", "Tokens", ",d"),
            make_number_column("seconds", "Seconds", ",.0f"),
            make_text_column("test_data_seen", "Test data seen"),
        )
    ),
    keys=("method", "measure"),
    notes=lambda frames, frame: [
        "P@1 ranks the replies of a block by their mean log-probability per token. Perplexity is "
        "per word and does not include the end of a reply, so it is not comparable with the "
        "perplexities in Table 2. Endpoints have BLEU only.",
    ],
    section="cost",
    planned=has_prompted,
    runs=lambda row, run: run.method == row["method"],
)
