"""Phrases about collapsed runs, which predict one label only, for statements that use them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from tasktransfer.designs.transfer.runs import BASELINE

PLACE = ["dataset", "model", "target"]


class CollapsedRuns:
    """Lookup of the table ``collapsed`` by cell.

    Args:
        collapsed: columns of ``columns.COLLAPSED``; without rows no run counts as collapsed.
    """

    def __init__(self, collapsed: pd.DataFrame) -> None:
        own = collapsed[collapsed["n_collapsed"] > 0] if len(collapsed) else collapsed
        rows = [{str(key): value for key, value in row.items()} for row in own.to_dict("records")]
        self._counts = {
            _build_key(row, row["algorithm"], row["source"]): (row["n_collapsed"], row["n_runs"])
            for row in rows
        }

    def describe(self, cell: Mapping[Any, Any]) -> str:
        """Describe the collapsed runs and baselines of a cell in words.

        Empty if none of the cell's runs and baselines does.
        """
        parts = [
            f"the {what}" if of == 1 else f"{count:d} of {of:d} {what}s"
            for what, (count, of) in self._select_counts(cell).items()
            if count
        ]
        verb = "predicts" if self.count(cell) == 1 else "predict"
        return f"{' and '.join(parts)} {verb} one label only" if parts else ""

    def count(self, cell: Mapping[Any, Any]) -> int:
        """Count a cell's runs and baselines that predict one label only."""
        return sum(int(count) for count, _ in self._select_counts(cell).values())

    def _select_counts(self, cell: Mapping[Any, Any]) -> dict[str, tuple[int, int]]:
        keys = {
            "run": _build_key(cell, cell["algorithm"], cell["source"]),
            "baseline": _build_key(cell, BASELINE, ""),
        }
        return {what: self._counts[key] for what, key in keys.items() if key in self._counts}


def _build_key(row: Mapping[Any, Any], algorithm: Any, source: Any) -> tuple[str, ...]:
    return (*(str(row[name]) for name in PLACE), str(algorithm), str(source))
