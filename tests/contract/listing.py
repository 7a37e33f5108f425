"""Result of `collect` for a study's records: its exit code and all its output."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from tasktransfer.cli import main
from tasktransfer.results.study import Study

LISTS = ("missing", "problems")
"""Tables of missing and damaged results."""


@dataclass(frozen=True)
class Told:
    """Result of `collect`.

    ``lines``: printed lines, lines of the list of missing results, and one line per row of the
    tables in ``LISTS``.
    """

    code: int
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def of(self, *words: str) -> list[str]:
        """Return the lines that contain all of these words."""
        return [line for line in self.lines if all(word in line for word in words)]


def collect(study: Study, capsys: pytest.CaptureFixture[str], *options: str) -> Told:
    """Collect the study in the working directory, from records alone."""
    for name in LISTS:
        Path(study.tables, f"{name}.parquet").unlink(missing_ok=True)
    holes = Path(study.missing_results_log)
    holes.unlink(missing_ok=True)
    capsys.readouterr()
    code = main(["collect", "--config", study.config_file, *options])
    seen = capsys.readouterr()
    listed = holes.read_text() if holes.exists() else ""
    rows = [row for name in LISTS for row in _rows(Path(study.tables, f"{name}.parquet"))]
    return Told(code, (*f"{seen.out}{seen.err}{listed}".splitlines(), *rows))


def _rows(table: Path) -> list[str]:
    if not table.exists():
        return []
    rows = pd.read_parquet(table).astype(object).to_numpy().tolist()
    return [" | ".join(map(str, row)) for row in rows]
