"""Declarations of the frames ``selectors`` and ``regret``, their table and their figure.

This module does not import pandas or matplotlib, because the Snakefile imports it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tasktransfer.core.lazy import LazyPackage
from tasktransfer.present.columns import (
    make_estimate_column,
    make_number_column,
    make_p_value_column,
    make_text_column,
)
from tasktransfer.present.declared import Figure, FlatTable, Table
from tasktransfer.present.numbers import SCORES
from tasktransfer.results.frames import NUMBER, TEXT, WHOLE, Column, Columns

VALUES: Columns = (
    ("dataset", TEXT, "dataset"),
    ("model", TEXT, "model, by its name in the study"),
    ("algorithm", TEXT, "algorithm whose transfers were read; empty if no transfers were read"),
    ("selector", TEXT, "name of the selector"),
    ("source", TEXT, "source task"),
    ("target", TEXT, "target task"),
    ("seed", WHOLE, "seed of the baselines, probes or transfers that were read"),
    ("value", NUMBER, "value in the selector's unit, higher is better; NaN if missing"),
    ("reason", TEXT, "why the value is missing; null if it is not"),
    ("seconds", NUMBER, "cost in seconds; costs common to several pairs are divided"),
    ("tokens", NUMBER, "cost in model tokens; costs common to several pairs are divided"),
)

RANDOM, SOURCE_MEAN = "random", "source_mean"
"""Selectors that every other selector is compared with."""


def _list_difference_columns(reference: str) -> tuple[Column, ...]:
    return (
        (f"to_{reference}", NUMBER, f"value minus the value of {reference}, paired by target"),
        (f"to_{reference}_low", NUMBER, "lower end of its 95 % interval"),
        (f"to_{reference}_high", NUMBER, "upper end of that interval"),
        (f"to_{reference}_p", NUMBER, "two-sided p of no difference; NaN without a test"),
        (f"to_{reference}_q", NUMBER, "p adjusted for the selectors of the group"),
    )


REGRET: Columns = (
    ("dataset", TEXT, "dataset of targets and sources; `all` for all datasets together"),
    ("model", TEXT, "name of the model in the config"),
    ("algorithm", TEXT, "transfer algorithm whose scores evaluate the rankings"),
    ("selector", TEXT, "selector that ranks the sources"),
    (
        "measure",
        TEXT,
        "regret@k (best of k) or mean_regret@k, in points or with %; ndcg_rank, ndcg_percent, "
        "ndcg_fraction; spearman",
    ),
    ("value", NUMBER, "mean over targets; ties of a selector are in random order"),
    ("low", NUMBER, "lower end of its 95 % interval over targets and seeds"),
    ("high", NUMBER, "upper end of the interval; NaN with one target"),
    (
        "floor",
        NUMBER,
        "noise floor: the sources ranked by half of the seeds, evaluated with the other half; NaN "
        "with one seed",
    ),
    (
        "floor_random",
        NUMBER,
        "a random ranking, evaluated with half of the seeds, like the noise floor; `value` is "
        "evaluated with all seeds, so it is not comparable with the noise floor",
    ),
    *_list_difference_columns(RANDOM),
    *_list_difference_columns(SOURCE_MEAN),
    ("n_targets", WHOLE, "number of targets with at least two sources"),
    ("n_seeds", WHOLE, "number of seeds of the evaluating scores"),
    ("missing", NUMBER, "fraction of pairs without a value, 0-1; they are ranked last"),
    ("seconds", NUMBER, "total time to compute its values, seconds; NaN if unknown"),
)


if TYPE_CHECKING:
    from tasktransfer.selection import figure, regret, values
else:
    selection = LazyPackage("tasktransfer.selection")
    figure, regret, values = selection.figure, selection.regret, selection.values

NOTHING = "has no target with two sources to rank and a baseline that has learned"


def declare_regret_table(label: Callable[[str], str], baseline: str) -> Table:
    """Declare the table of selectors' regrets.

    Args:
        label: function from an algorithm to its label.
        baseline: method of the runs without a source.
    """
    return Table(
        "regret",
        "Regret of selectors",
        regret.select_leading_rows,
        FlatTable(
            (
                make_text_column("dataset", "Dataset"),
                make_text_column("model", "Model"),
                make_text_column("algorithm", "Algorithm", label),
                make_text_column("selector", "Selector"),
                make_estimate_column("value", "Regret@1, points", ".2f", bounds=SCORES),
                make_number_column("floor", "Noise floor", ".2f"),
                make_number_column("floor_random", "Random, half the seeds", ".2f"),
                make_p_value_column("to_random_q", "q: random"),
                make_p_value_column("to_source_mean_q", "q: source_mean"),
                make_number_column("seconds", "Seconds", ".3g"),
                make_number_column("n_targets", "Targets", "d"),
            ),
            blocks="algorithm",
        ),
        keys=("dataset", "model", "algorithm", "selector"),
        notes=lambda frames, _: values.describe_left_out_targets(frames),
        nothing=NOTHING,
        certain=False,
        runs=partial(regret.is_judging_run, baseline),
    )


def declare_regret_figure(label: Callable[[str], str]) -> Figure:
    """Declare the figure that plots regret against cost."""
    return Figure(
        "regret",
        "Regret of selectors over their cost",
        partial(figure.plot_study_regret, label),
        ("regret", "deltas", "references"),
        nothing=NOTHING,
        certain=False,
        folded=True,
    )
