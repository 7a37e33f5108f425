"""Printed tables about the errors of single labels, and about more training dialogues.

The Snakefile imports this module, so it must not import pandas.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from tasktransfer.core.lazy import LazyPackage
from tasktransfer.core.references import METHODS, REFERENCES
from tasktransfer.core.runs import Run
from tasktransfer.core.samples import NEXT
from tasktransfer.designs.transfer.runs import BASELINE, SAMPLES, is_reference
from tasktransfer.present.columns import (
    Column,
    Head,
    make_estimate_column,
    make_number_column,
    make_text_column,
)
from tasktransfer.present.declared import FlatTable, PivotTable, Table
from tasktransfer.present.numbers import DIFFERENCES, SCORES

if TYPE_CHECKING:
    from tasktransfer.designs.transfer.tables import printed_rows
else:
    printed_rows = LazyPackage("tasktransfer.designs.transfer.tables").printed_rows


def _format_method_name(name: str) -> str:
    return METHODS.get(name, name)


def _is_source_run(row: Mapping[str, Any], run: Run) -> bool:
    """Return whether a row is computed from a run, which is its baseline or its reference."""
    if (run.about.get("dataset"), run.model) != (row["dataset"], row["model"]):
        return False
    if is_reference(run):
        return bool(run.about["reference"] == row["method"])
    return bool(run.method == BASELINE == row["method"] and run.about["target"] == row["target"])


def _is_learning_curve_run(row: Mapping[str, Any], run: Run) -> bool:
    """Return whether a row of a learning curve is computed from a run.

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
    """Return the table of scores by label. The page shows it folded if ``folded`` is true."""
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
            "“Precision” is the fraction of a label's predictions that are correct. “Recall” is "
            "the fraction of a label's instances that are predicted correctly. “Predicted” is the "
            "number of predictions of the label, averaged over seeds. The 95 % intervals are over "
            "dialogues and seeds. An interval is missing if leaving out a dialogue never changes "
            "the value, for example if no prediction is wrong."
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
