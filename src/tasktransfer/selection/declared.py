"""Declarations of the regret table and its figure, for designs with selectors.

This module does not import pandas or matplotlib, because the Snakefile imports it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tasktransfer.core.lazy import LazyPackage
from tasktransfer.present.columns import estimate, number, probability, text
from tasktransfer.present.declared import Figure, Listed, Table
from tasktransfer.present.numbers import SCORES

if TYPE_CHECKING:
    from tasktransfer.selection import figure, regret
else:
    selection = LazyPackage("tasktransfer.selection")
    figure, regret = selection.figure, selection.regret

NOTHING = "has no target with two sources to rank"


def declare_regret_table(label: Callable[[str], str], baseline: str) -> Table:
    """Declare the table of regrets.

    Args:
        label: function from an algorithm to its label.
        baseline: method of the runs without a source.
    """
    return Table(
        "regret",
        "Regret of selectors",
        regret.select_leading_rows,
        Listed(
            (
                text("dataset", "Dataset"),
                text("model", "Model"),
                text("algorithm", "Algorithm", label),
                text("selector", "Selector"),
                estimate("value", "Regret@1, points", ".2f", bounds=SCORES),
                number("floor", "Noise floor", ".2f"),
                probability("to_random_q", "q: random"),
                probability("to_source_mean_q", "q: source_mean"),
                number("seconds", "Seconds", ".3g"),
                number("n_targets", "Targets", "d"),
            ),
            blocks="algorithm",
        ),
        keys=("dataset", "model", "algorithm", "selector"),
        nothing=NOTHING,
        certain=False,
        runs=partial(regret.is_judging_run, baseline),
    )


def declare_regret_figure(label: Callable[[str], str]) -> Figure:
    """Declare the figure of regrets over costs."""
    return Figure(
        "regret",
        "Regret of selectors over their cost",
        partial(figure.plot_study_regret, label),
        ("regret",),
        nothing=NOTHING,
        certain=False,
        folded=True,
    )
