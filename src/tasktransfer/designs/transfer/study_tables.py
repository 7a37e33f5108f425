"""Tables of the paper, of shared test dialogues, of label errors and of learning curves.

The Snakefile imports this module, so it must not import pandas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from tasktransfer.core.lazy import LazyPackage
from tasktransfer.core.nodes.data import NEXT
from tasktransfer.core.references import METHODS, REFERENCES
from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer.runs import (
    BASELINE,
    SAMPLES,
    is_prompted,
    is_reference,
    select_transfer_runs,
)
from tasktransfer.present.columns import (
    Column,
    Head,
    make_estimate_column,
    make_number_column,
    make_text_column,
)
from tasktransfer.present.declared import FlatTable, PivotTable, Table
from tasktransfer.present.numbers import DIFFERENCES, SCORES
from tasktransfer.results.frames import is_always_planned
from tasktransfer.results.study import Study

if TYPE_CHECKING:
    from tasktransfer.designs.transfer.tables import paper_tables, printed_rows
else:
    tables = LazyPackage("tasktransfer.designs.transfer.tables")
    paper_tables, printed_rows = tables.paper_tables, tables.printed_rows


def has_sources(study: Study, least: int) -> bool:
    """Return whether any run has at least ``least`` sources."""
    return any(len(run.about["sources"]) >= least for run in select_transfer_runs(study.plan))


def has_single_transfer(study: Study) -> bool:
    """Return whether any run is a transfer from a source."""
    return has_sources(study, 1)


def _has_table2_rows(study: Study) -> bool:
    return has_sources(study, 1) or any(map(is_prompted, study.plan.runs))


def _has_training(study: Study) -> bool:
    return any(not is_prompted(run) for run in study.plan.runs)


def _has_multi_source(study: Study) -> bool:
    return has_sources(study, 2)


def _build_table_function(name: str, what: str) -> Callable[..., Any]:
    """Return a function of ``tables.paper_tables`` for one table, with a lazy import."""
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
            folded=name in ("table3", "table6", "published_check"),
            planned=planned,
            cited=name == "published_check",
            described=_build_table_function(name, "describe_columns"),
            runs=paper_tables.is_source_run,
            among=None if name == "table1" else partial(printed_rows.drop_unused_baselines, name),
        )


SHARED_TABLE = Table(
    "shared_dialogues",
    "Test dialogues shared between datasets",
    paper_tables.list_shared_dialogues,
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
    notes=paper_tables.describe_allowed_leaks,
    nothing="has no pair of two datasets whose dialogues were counted",
    section="made",
    certain=False,
    runs=paper_tables.is_shared_source_run,
)
"""Table of shared dialogues. They are counted when a study starts; imported records have none."""


def _format_method_name(name: str) -> str:
    return METHODS.get(name, name)


def _is_source_run(row: Mapping[str, Any], run: Run) -> bool:
    """Return whether a row is computed from a run, including its baseline and reference."""
    if (run.about.get("dataset"), run.model) != (row["dataset"], row["model"]):
        return False
    if is_reference(run):
        return bool(run.about["reference"] == row["method"])
    return bool(run.method == BASELINE == row["method"] and run.about["target"] == row["target"])


def _is_learning_curve_run(row: Mapping[str, Any], run: Run) -> bool:
    """Return whether a row of the learning-curve table is computed from a run.

    A forecast is computed from all fractions, and the score of a fraction from its own runs.
    """
    if row["method"] in REFERENCES:
        return _is_source_run(row, run)
    names = (run.about.get("dataset"), run.model, run.about.get("target"))
    if names != (row["dataset"], row["model"], row["target"]):
        return False
    fraction = 1.0 if run.method == BASELINE else SAMPLES.get(run.method)
    return fraction is not None and float(row["fraction"]) in (fraction, NEXT)


def _format_fraction(fraction: str) -> str:
    return f"{100 * float(fraction):.0f} %" if float(fraction) <= 1 else "forecast"


def declare_labels_table(*, folded: bool) -> Table:
    """Declare the table of scores by label, collapsed on the page if ``folded`` is true."""
    return Table(
        "labels",
        "Scores of each label",
        printed_rows.list_label_scores,
        FlatTable(
            (
                make_text_column("dataset", "Dataset"),
                make_text_column("target", "Task"),
                make_text_column("model", "Model"),
                make_text_column("method", "Method", _format_method_name),
                make_text_column("label", "Label"),
                make_number_column("support", "Instances", ",d"),
                make_number_column("predicted", "Predicted", ",.1f"),
                *(
                    make_estimate_column(key, name, ".0f", f"{key}_low", f"{key}_high", SCORES)
                    for key, name in (("precision", "Precision"), ("recall", "Recall"))
                ),
                make_estimate_column("f1", "F1", ".0f", "f1_low", "f1_high", SCORES),
            ),
            blocks="method",
        ),
        keys=("dataset", "target", "model", "method", "label"),
        caption=(
            "Scores of baselines and references on the test split (0-100), averaged over seeds. "
            "Precision is the fraction of a label's predictions that are correct. Recall is the "
            "fraction of a label's instances that are predicted correctly. The column “Predicted” "
            "is the number of predictions of the label, averaged over seeds. The 95 % intervals "
            "are over dialogues and seeds. An interval is missing if leaving out a dialogue never "
            "changes the value, for example if no prediction is wrong."
        ),
        notes=partial(printed_rows.describe_omitted_rows, "labels"),
        nothing="has no predictions for a task with one label per input",
        folded=folded,
        certain=False,
        runs=_is_source_run,
    )


def _format_prediction(row: Mapping[str, Any]) -> str:
    """Return the predicted label, and the number of seeds with an error if they differ."""
    label = row["predicted"] or "no label"
    part = f" ({row['wrong']} of {row['n_seeds']} wrong)"
    return f"{label}{part if 0 < row['wrong'] < row['n_seeds'] else ''}"


ERRORS_TABLE = Table(
    "errors",
    "Test instances with the most errors",
    printed_rows.list_errors,
    PivotTable(
        (
            make_text_column("dataset", "Dataset"),
            make_text_column("target", "Task"),
            make_text_column("instance", "Instance"),
            make_text_column("gold", "Gold label"),
        ),
        "predicted_by",
        Column(Head("", "word"), _format_prediction),
    ),
    keys=("dataset", "target", "model", "method", "instance"),
    caption=(
        "Test instances that most methods get wrong, with file and line. Each method's column "
        "shows the label that the method predicts most often over seeds. If all methods predict "
        "the same label, check the gold label."
    ),
    notes=printed_rows.describe_errors,
    nothing="has no errors in a task with one label per input",
    certain=False,
    runs=_is_source_run,
)
CURVE_TABLE = Table(
    "learning_curve",
    "Scores by number of training dialogues",
    printed_rows.list_learning_curves,
    FlatTable(
        (
            make_text_column("dataset", "Dataset"),
            make_text_column("target", "Task"),
            make_text_column("model", "Model"),
            make_text_column("method", "Method", _format_method_name),
            make_text_column("fraction", "Fraction", _format_fraction),
            make_number_column("dialogues", "Dialogues", ",d"),
            make_number_column("n_seeds", "Samples", "d"),
            make_estimate_column("score", "Score", ".1f", bounds=SCORES),
            make_estimate_column("gain", "Gain", "+.1f", "gain_low", "gain_high", DIFFERENCES),
        ),
        blocks="method",
    ),
    keys=("dataset", "target", "model", "method", "fraction"),
    caption=(
        "Each sample contains the next smaller sample of its seed. The gain is the difference "
        "from the fraction above, paired by sample and test dialogue, with a 95 % interval. The "
        "forecast is the score with twice as many dialogues, from a power law through the last "
        "two doublings. The interval of the forecast covers two other assumptions: the gain stays "
        "the same, or it falls by as many points as before."
    ),
    nothing="has no learning curve (run `tasktransfer learning-curve`)",
    certain=False,
    runs=_is_learning_curve_run,
)
