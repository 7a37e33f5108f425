"""Columns of the panel's tables, and conditions under which a study's plan has a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tasktransfer.designs.panel.config import get_config
from tasktransfer.designs.panel.names import CONTROLS, PUBLISHED, get_domain
from tasktransfer.present import numbers
from tasktransfer.present.columns import Column, Head, Row
from tasktransfer.present.numbers import DASH, is_missing
from tasktransfer.results.study import Study

UNSURE = "°"
"""Mark of a correlation or a difference that is not significant."""
UNSURE_NOTE = f"{UNSURE} Not significant (q > 0.05)."
UNSURE_DIFFERENCE = (
    f"{UNSURE} Not significant: q > 0.05, or the interval over contexts and seeds contains 0."
)


def mark_uncertain(column: Column) -> Column:
    """Return the column with marks on cells that are not significant or from a single run."""

    def show(row: Row) -> str:
        q: Any = row.get("q")
        text = column.show(row)
        if not is_missing(q):
            return text + (UNSURE if q > 0.05 or _contains_0(row) else "")
        return f"{text} (one run)" if text != DASH and _is_one_run(row) else text

    return Column(column.head, show)


def _contains_0(row: Row) -> bool:
    """Return whether the interval of a difference (over contexts and seeds) contains 0.

    Only rows of the table ``tests`` have this interval.
    """
    low: Any = row.get("seeds_low")
    high: Any = row.get("seeds_high")
    return not is_missing(low) and not is_missing(high) and bool(low <= 0 <= high)


def _is_one_run(row: Row) -> bool:
    """Return whether a number without a q-value is from one training run.

    Rows of the table ``tests`` have no number of seeds. The user's own raters have no runs.
    """
    if row.get("method") in CONTROLS or row.get("brought") is True:
        return False
    return bool(row["seeds"] == 1) if "seeds" in row else not is_missing(row.get("p"))


def make_measure_column(key: str) -> Column:
    """Return a column that shows counts as whole numbers, and means with one decimal."""

    def show(row: Row) -> str:
        whole = row["measure"] in ("instances", "contexts")
        return numbers.format_number(row[key], ",.0f" if whole else ".1f")

    return Column(Head("", "number"), show)


def show_all_if_empty(name: str) -> str:
    return name or "all"


def format_method_name(method: str) -> str:
    """Return the method's name with its name in the paper on a second line."""
    return f"{method}\n({PUBLISHED[method]})" if method in PUBLISHED else method


def format_with_sd(row: Row) -> str:
    """Return the value with its standard deviation in parentheses, if there is one."""
    value = numbers.format_number(row["value"], ".1f")
    return (
        value if is_missing(row["sd"]) else f"{value} ({numbers.format_number(row['sd'], '.1f')})"
    )


# --- conditions on the plan -----------------------------------------------------------------------


def make_rated_sets_condition(inside: bool) -> Callable[[Study], bool]:
    """Return a predicate for studies with rated sets inside or outside their domains."""

    def planned(study: Study) -> bool:
        config = get_config(study)
        return any((get_domain(name) in config.domains) == inside for name in config.rated_sets)

    return planned


def make_methods_condition(*methods: str) -> Callable[[Study], bool]:
    """Return a predicate for studies with any of the methods."""
    return lambda study: bool({*methods} & {*get_config(study).methods})


def has_comparisons(study: Study) -> bool:
    """Return whether the study has several raters to compare."""
    config = get_config(study)
    return bool(config.methods or config.prompted or config.brought)


def has_trainings(study: Study) -> bool:
    """Return whether the study trains anything."""
    return bool(study.plan.stages)


def has_few_shot(study: Study) -> bool:
    """Return whether the study has few-shot transfer to rated sets."""
    return get_config(study).few_shot is not None


def has_selection(study: Study) -> bool:
    """Return whether the study has response selection."""
    return get_config(study).selection is not None
