"""What `collect` says of a study's records: its exit code, and everything that it tells."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from tasktransfer.cli import main
from tasktransfer.results.study import Study

LISTS = ("missing", "control_missing", "other_missing", "problems")
"""Tables of what is not there, where a design has them."""


@dataclass(frozen=True)
class Told:
    """``lines``: of what was printed, of the list of holes, and of the tables of what is not there,
    a line a row."""

    code: int
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def of(self, *words: str) -> list[str]:
        """The lines that have all of these words."""
        return [line for line in self.lines if all(word in line for word in words)]


def collect(study: Study, capsys: pytest.CaptureFixture[str], *options: str) -> Told:
    """Collect the study in the working directory, from records alone."""
    for name in LISTS:
        Path(study.tables, f"{name}.parquet").unlink(missing_ok=True)
    holes = Path(study.holes)
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
