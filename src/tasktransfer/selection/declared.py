"""Declarations of the regret table and its figure, for designs with selectors.

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

if TYPE_CHECKING:
    from tasktransfer.selection import figure, regret
else:
    selection = LazyPackage("tasktransfer.selection")
    figure, regret = selection.figure, selection.regret

NOTHING = "has no target with two sources to rank"


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
                make_p_value_column("to_random_q", "q: random"),
                make_p_value_column("to_source_mean_q", "q: source_mean"),
                make_number_column("seconds", "Seconds", ".3g"),
                make_number_column("n_targets", "Targets", "d"),
            ),
            blocks="algorithm",
        ),
        keys=("dataset", "model", "algorithm", "selector"),
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
        ("regret",),
        nothing=NOTHING,
        certain=False,
        folded=True,
    )
