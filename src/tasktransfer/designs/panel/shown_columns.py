"""Columns of the panel's tables, and which of them a study's plan has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tasktransfer.designs.panel.names import CONTROLS, PUBLISHED, domain_of
from tasktransfer.present.declared import late
from tasktransfer.results.study import Study
from tasktransfer.tables import numbers
from tasktransfer.tables.columns import Column, Head, Row
from tasktransfer.tables.numbers import DASH, absent

UNSURE = "°"
"""Marks a correlation or a difference that is not told apart from none."""
UNSURE_NOTE = f"{UNSURE} q > 0.05: not told apart from none."


def unless_sure(column: Column) -> Column:
    """Return the column, marked where its q is above 0.05 and where it is of one run."""

    def show(row: Row) -> str:
        q: Any = row.get("q")
        text = column.show(row)
        if not absent(q):
            return text + (UNSURE if q > 0.05 else "")
        return f"{text} (one run)" if text != DASH and _is_one_run(row) else text

    return Column(column.head, show)


def _is_one_run(row: Row) -> bool:
    """Return whether a number without a q is of one training; tests have no number of seeds."""
    if row.get("method") in CONTROLS:
        return False
    return bool(row["seeds"] == 1) if "seeds" in row else not absent(row.get("p"))


def published(form: str = ".2f") -> Column:
    """What the paper has; a dash where it has nothing. (Its joins import pandas.)"""
    column = late("present.published_columns", "published_column")
    return Column(Head("Published", "number"), lambda row: str(column(form).show(row)))


def by_measure(key: str) -> Column:
    """Counts whole, means with one decimal."""

    def show(row: Row) -> str:
        whole = row["measure"] in ("instances", "contexts")
        return numbers.number(row[key], ",.0f" if whole else ".1f")

    return Column(Head("", "number"), show)


def all_if_empty(name: str) -> str:
    return name or "all"


def with_paper_name(method: str) -> str:
    """A method, and below it what the paper calls it."""
    return f"{method}\n({PUBLISHED[method]})" if method in PUBLISHED else method


def with_spread(row: Row) -> str:
    value = numbers.number(row["value"], ".1f")
    return value if absent(row["sd"]) else f"{value} ({numbers.number(row['sd'], '.1f')})"


# --- what a plan tells ----------------------------------------------------------------------------


def rates(inside: bool) -> Callable[[Study], bool]:
    """Whether a study has sets of trained domains, or others."""

    def planned(study: Study) -> bool:
        config: Any = study.config
        return any((domain_of(name) in config.domains) == inside for name in config.rated)

    return planned


def has(*methods: str) -> Callable[[Study], bool]:
    """Whether any of the methods is in a study."""
    return lambda study: bool({*methods} & {*_config(study).methods})


def _config(study: Study) -> Any:
    return study.config


def compares(study: Study) -> bool:
    """Whether there is anything to compare; the cosines always are."""
    return bool(_config(study).methods)


def transfers(study: Study) -> bool:
    """Whether rated sets are transferred to."""
    return _config(study).few_shot is not None


def selects(study: Study) -> bool:
    """Whether responses are selected."""
    return _config(study).selection is not None
