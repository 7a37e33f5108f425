"""Tables of the paper, and the table of test dialogues shared between datasets.

The Snakefile imports this module, so it must not import pandas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from tasktransfer.core.lazy import LazyPackage
from tasktransfer.designs.transfer.runs import is_prompted, select_transfer_runs
from tasktransfer.present.columns import make_number_column, make_text_column
from tasktransfer.present.declared import FlatTable, Table
from tasktransfer.results.frames import is_always_planned
from tasktransfer.results.study import Study

if TYPE_CHECKING:
    from tasktransfer.designs.transfer.tables import paper_tables, printed_rows, shared_dialogues
else:
    tables = LazyPackage("tasktransfer.designs.transfer.tables")
    paper_tables, shared_dialogues = tables.paper_tables, tables.shared_dialogues
    printed_rows = tables.printed_rows


def has_sources(study: Study, least: int) -> bool:
    """Return whether any run transfers from ``least`` or more sources."""
    return any(len(run.about["sources"]) >= least for run in select_transfer_runs(study.plan))


def has_single_transfer(study: Study) -> bool:
    """Return whether a run transfers from any source."""
    return has_sources(study, 1)


def _has_table2_rows(study: Study) -> bool:
    return has_sources(study, 1) or any(map(is_prompted, study.plan.runs))


def _has_training(study: Study) -> bool:
    return any(not is_prompted(run) for run in study.plan.runs)


def _has_multi_source(study: Study) -> bool:
    return has_sources(study, 2)


def _build_table_function(name: str, what: str) -> Callable[..., Any]:
    """Return a lazy function of ``tables.paper_tables``, bound to one table."""
    return partial(getattr(paper_tables, what), name)


OWN = {
    "table1": ("Tasks and samples", "The tasks of the study and their numbers of instances."),
    "table2": (
        "Scores and deltas by algorithm",
        "Average, top-1 and bottom-1 score and delta per dataset, model and algorithm.",
    ),
    "table3": (
        "Several sources together",
        "Gain of transfer from several sources at once over the mean of the same sources used one "
        "at a time.",
    ),
    "table6": (
        "Several sources together and alone",
        "Deltas of the runs on several sources at once, and the mean delta of the same sources "
        "used one at a time.",
    ),
}
"""Table → title and caption in a study without a dataset of the paper."""


def declare_paper_tables(*, published: bool) -> Iterator[Table]:
    """Yield the paper's tables. ``published`` is true if the study has a dataset of the paper."""
    pair = ("dataset", "model", "algorithm")
    cell = ("dataset", "target", "source", "model", "algorithm")
    for name, (title, keys, planned, nothing) in {
        "table2": (
            "Table 2",
            pair,
            _has_table2_rows,
            "has neither single-source transfer nor a prompted model",
        ),
        "table3": ("Table 3", cell, _has_multi_source, "has no multi-source run"),
        "table6": ("Table 6", cell, _has_multi_source, "has no multi-source run"),
        "table1": ("Table 1", ("dataset", "task"), _has_training, "trains no model"),
        "published_check": ("Published Table 2", (), is_always_planned, ""),
    }.items():
        if name == "published_check" and not published:
            continue
        own = ("", "") if published else OWN[name]
        yield Table(
            name,
            own[0] or title,
            _build_table_function(name, "compute_table"),
            _build_table_function(name, "lay_out_table"),
            keys=keys,
            caption=own[1],
            notes=_build_table_function(name, "describe_table"),
            nothing=nothing,
            section="made" if name in ("table1", "published_check") else "results",
            folded=name == "published_check",
            planned=planned,
            cited=name == "published_check",
            described=_build_table_function(name, "describe_columns"),
            runs=paper_tables.is_source_run,
            among=None if name == "table1" else partial(printed_rows.drop_unused_baselines, name),
        )


SHARED_TABLE = Table(
    "shared_dialogues",
    "Test dialogues shared between datasets",
    shared_dialogues.list_shared_dialogues,
    FlatTable(
        (
            make_text_column("dataset", "Dataset"),
            make_text_column("target", "Target"),
            make_text_column("source", "Source"),
            make_number_column(
                "shared", "Test dialogues among the source's training dialogues", "d"
            ),
            make_number_column("of", "Of", "d"),
            make_text_column("example", "Example"),
        ),
        blocks="target",
    ),
    keys=("dataset", "target", "source"),
    notes=shared_dialogues.describe_allowed_leaks,
    nothing="has no pair of two datasets whose dialogues were counted",
    section="made",
    certain=False,
    runs=shared_dialogues.is_source_run,
)
"""Table of shared dialogues. They are counted when a study starts; imported records have none."""
