"""What every table of a study says of the study, and the order of the study's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

import tasktransfer

Order = Mapping[str, Sequence[str]]
"""Kind of name ("dataset", "model", "algorithm", "task") → names in the study's order."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """What the footer of every table says."""

    study: str
    config_digest: str
    synthetic: bool
    """Whether dialogues of any dataset are generated."""
    records: int
    """Number of records behind the tables."""
    version: str = tasktransfer.__version__
    shorts: Mapping[str, str] = field(default_factory=dict)
    """Task → the short name that figures show."""
    order: Order = field(default_factory=dict)
    """Rows, panels and axes keep it, whichever runs are missing."""
    real: Sequence[str] = field(default_factory=list)
    """Datasets whose dialogues are real though those of another are generated."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What the design says of the whole study, for captions; the design knows the keys."""
    cuts: str = ""
    """The settings that leave a part of the data away, such as ``limit_test 1200``."""

    def is_synthetic(self, dataset: str) -> bool:
        """Whether a dataset's dialogues are generated."""
        return self.synthetic and dataset not in self.real

    def ordered(self, kind: str, names: Iterable[str]) -> list[str]:
        """Distinct names of a kind in the study's order."""
        return in_order(names, self.order.get(kind, ()))


def synthetic_mark(real: Sequence[str]) -> str:
    """The mark of generated dialogues; ``real``: the datasets beside them that are real."""
    but = f", but {' and '.join(real)} {'is' if len(real) == 1 else 'are'} real" if real else ""
    return f"SYNTHETIC (tiny world){but}. "


def in_order(names: Iterable[str], order: Sequence[str]) -> list[str]:
    """Distinct names, those that ``order`` has first and in its order, the others as they come."""
    listed = list(dict.fromkeys(names))
    return [name for name in order if name in listed] + [n for n in listed if n not in order]


def sort_rows(frame: pd.DataFrame, columns: Mapping[str, str], order: Order) -> pd.DataFrame:
    """Rows by columns of names, the first column first; ``columns``: column → its kind of name."""
    ranks = {
        column: {
            name: rank for rank, name in enumerate(in_order(frame[column], order.get(kind, ())))
        }
        for column, kind in columns.items()
    }
    return frame.sort_values(
        list(columns), key=lambda values: values.map(ranks[str(values.name)]), ignore_index=True
    )
