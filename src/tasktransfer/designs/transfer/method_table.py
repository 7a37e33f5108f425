"""Declaration of the table and figure that compare all methods on each target."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from tasktransfer.core.lazy import LazyPackage
from tasktransfer.core.nodes import Fit
from tasktransfer.core.references import (
    ADAPTER,
    FINE_TUNING,
    METHODS,
    PROMPTED,
    TRANSFER,
    get_training_method,
)
from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer.frames import compares_methods
from tasktransfer.designs.transfer.runs import (
    BASELINE,
    get_algorithm_label,
    is_prompted,
    is_reference,
)
from tasktransfer.present.columns import (
    Column,
    Head,
    Row,
    make_estimate_column,
    make_number_column,
    make_p_value_column,
    make_text_column,
)
from tasktransfer.present.declared import Figure, FlatTable, Table
from tasktransfer.present.numbers import DASH, DIFFERENCES, SCORES, is_missing

if TYPE_CHECKING:
    from tasktransfer.designs.transfer.figures import forest, one_dataset
    from tasktransfer.designs.transfer.tables import printed_rows
else:
    figures = LazyPackage("tasktransfer.designs.transfer.figures")
    forest, one_dataset = figures.forest, figures.one_dataset
    printed_rows = LazyPackage("tasktransfer.designs.transfer.tables").printed_rows

NOTHING = "has no target with two methods to compare"


def is_method_run(row: Mapping[str, Any], run: Run) -> bool:
    """Return whether a row of the table ``methods`` is computed from a run."""
    about, method = run.about, row["method"]
    if about.get("dataset") != row["dataset"]:
        return False
    if is_reference(run):
        same_model = is_missing(row["model"]) or row["model"] == run.model
        predicts = isinstance(run.outcome, Fit) and row["target"] in run.outcome.tasks
        return bool(about.get("reference") == method and same_model and predicts)
    if row["model"] != run.model or about.get("target") != row["target"]:
        return False
    if is_prompted(run):
        return bool(method == PROMPTED and row["variant"] == f"{about['shots']} shots")
    if method == TRANSFER:
        return bool(row["variant"] == f"{run.method}:{'+'.join(about['sources'])}")
    return method in (FINE_TUNING, ADAPTER) and run.method == BASELINE


def list_method_names(run: Run) -> tuple[str, ...]:
    """Return the names of a run's method in the table ``methods``: its key and its label.

    Empty if the run is not a reference, a baseline or a prompted model.
    """
    method = PROMPTED if is_prompted(run) else str(run.about.get("reference", ""))
    if run.method == BASELINE:
        # A run that only the tables have is known without its stages.
        method = get_training_method(run.stages[-1].model) if run.stages else FINE_TUNING
    return (method, METHODS[method]) if method in METHODS else ()


def _format_variant(row: Row) -> str:
    """Return a method's shots, or the algorithm and sources of a transfer, in words."""
    if is_missing(row["variant"]):
        return DASH
    if row["method"] != TRANSFER:
        return str(row["variant"])
    algorithm, _, sources = str(row["variant"]).partition(":")
    tasks = " + ".join(sources.replace("_", " ").split("+"))
    return f"{tasks}, {get_algorithm_label(algorithm)}"


def declare_methods_table() -> Table:
    """Declare the table ``methods``."""
    return Table(
        "methods",
        "Methods",
        printed_rows.list_methods,
        FlatTable(
            (
                make_text_column("dataset", "Dataset"),
                make_text_column("target", "Task"),
                make_text_column("method", "Method", METHODS.__getitem__),
                make_text_column("model", "Model"),
                Column(Head("Shots or source"), _format_variant),
                make_text_column("mark", "Advice"),
                make_estimate_column("score", "Score", ".1f", bounds=SCORES),
                make_number_column("n_seeds", "Seeds", "d"),
                make_estimate_column(
                    "delta", "Δ to recommended", "+.1f", "delta_low", "delta_high", DIFFERENCES
                ),
                make_p_value_column("q", "q"),
                make_number_column("train_size", "Training instances", ",d"),
                make_number_column("seconds", "Seconds to train", ".3g"),
                make_number_column("milliseconds", "ms per prediction", ".3g"),
                make_number_column("parameters", "Parameters", ",.0f"),
                make_number_column("trained_parameters", "Trained", ",.0f"),
            ),
            blocks="target",
        ),
        keys=("dataset", "target", "method", "model", "variant"),
        caption=(
            "All methods on the same test instances, from the simplest to the most complex. The "
            "score (0-100) is the mean over seeds with its 95 % interval over dialogues and "
            "seeds. The recommended method is the simplest method that is not significantly worse "
            "than any other method (q > 0.05). Transfers with a collapsed baseline are ignored. Δ "
            "is the paired difference from the recommended method in points, and q is its p-value, "
            "adjusted for all pairs of a task's methods. "
            "The table “Baselines and simple references” adjusts q over a whole dataset, so a pair "
            "that is in both tables can have two values of q. Seconds are for one seed, and the "
            "seconds of a reference include its predictions. The best method is selected on the "
            "test split, so its own score is slightly too high."
        ),
        nothing=NOTHING,
        planned=compares_methods,
        certain=False,
        runs=is_method_run,
    )


def declare_methods_figure(dataset: str) -> Figure:
    """Declare the figure of the methods of a dataset."""
    return Figure(
        f"methods_{dataset}",
        f"{dataset}: methods by target",
        forest.plot_methods,
        ("methods",),
        caption=(
            "Scores of all methods on each target with 95 % intervals over dialogues and seeds. "
            "The filled mark shows the recommended method: the simplest method that is not "
            "significantly worse than any other method."
        ),
        nothing=NOTHING,
        planned=compares_methods,
        certain=False,
        part=partial(one_dataset.select_dataset, dataset=dataset),
    )
