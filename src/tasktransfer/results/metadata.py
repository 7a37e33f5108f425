"""Metadata of a study in every one of its tables, and the order of the study's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

import tasktransfer

Order = Mapping[str, Sequence[str]]
"""Kind of name ("dataset", "model", "algorithm", "task") → names in the study's order."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """Metadata in the footer of every table."""

    study: str
    config_digest: str
    synthetic: bool
    """True if the dialogues of any dataset are synthetic."""
    records: int
    """Number of records behind the tables."""
    version: str = tasktransfer.__version__
    shorts: Mapping[str, str] = field(default_factory=dict)
    """Task → its short name in figures."""
    order: Order = field(default_factory=dict)
    """Order of rows, panels and axes, which does not depend on missing runs."""
    real: Sequence[str] = field(default_factory=list)
    """Datasets with real dialogues, if those of another dataset are synthetic."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """The design's facts on the whole study, for captions; each design defines its keys."""
    cuts: str = ""
    """Settings that subsample the data, such as ``limit_test 1200``."""

    def is_synthetic(self, dataset: str) -> bool:
        """Return whether a dataset's dialogues are synthetic."""
        return self.synthetic and dataset not in self.real

    def order_names(self, kind: str, names: Iterable[str]) -> list[str]:
        """Return the distinct names of a kind (such as method) in the study's order."""
        return order_names(names, self.order.get(kind, ()))


def format_synthetic_mark(real: Sequence[str]) -> str:
    """Return the mark for synthetic dialogues, which also lists datasets with real dialogues."""
    but = f", but {' and '.join(real)} {'is' if len(real) == 1 else 'are'} real" if real else ""
    return f"SYNTHETIC (tiny world){but}. "


def order_names(names: Iterable[str], order: Sequence[str]) -> list[str]:
    """Sort distinct names by ``order``, with unlisted names at the end."""
    listed = list(dict.fromkeys(names))
    return [name for name in order if name in listed] + [n for n in listed if n not in order]


def sort_rows(frame: pd.DataFrame, columns: Mapping[str, str], order: Order) -> pd.DataFrame:
    """Sort rows by columns of names. ``columns`` maps each column to its kind of name."""
    ranks = {
        column: {
            name: rank for rank, name in enumerate(order_names(frame[column], order.get(kind, ())))
        }
        for column, kind in columns.items()
    }
    return frame.sort_values(
        list(columns), key=lambda values: values.map(ranks[str(values.name)]), ignore_index=True
    )
