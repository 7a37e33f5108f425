"""Summaries of a user's judgements, written to files."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from tasktransfer.designs.empathetic import figures
from tasktransfer.designs.empathetic.agreement import build_agreement_table
from tasktransfer.designs.empathetic.human import as_rows, read_choices, read_ratings
from tasktransfer.files import replace_file
from tasktransfer.present.kit.style import save_figure
from tasktransfer.present.printed import to_csv


def write_summary(ratings: Path | None, choices: Path | None, out: Path) -> list[Path]:
    """Summarise a user's judgements into the folder ``out``, and return the written files.

    Writes ``ratings.csv`` (Table 3), ``choices.csv``, ``choices.png`` and ``choices.pdf`` (Figure
    5), and ``agreement.csv`` (Krippendorff's alpha) if its package is installed. Reads both input
    files before it writes anything.

    Raises:
        DataError: a line is invalid; the message has file, line, value and remedy.
    """
    rated = pd.DataFrame(as_rows(read_ratings(ratings))) if ratings else None
    ratios = read_choices(choices) if choices else None
    out.mkdir(parents=True, exist_ok=True)
    made = []
    if rated is not None:
        made.append(_write_csv(rated, out / "ratings.csv"))
    if ratios is not None:
        made.append(_write_csv(ratios.rename_axis("model").reset_index(), out / "choices.csv"))
        made += save_figure(figures.plot_ratios(ratios, f"Choices of {choices}"), out, "choices")
    if find_spec("krippendorff") is not None:
        made.append(_write_csv(build_agreement_table(ratings, choices), out / "agreement.csv"))
    return made


def _write_csv(frame: pd.DataFrame, file: Path) -> Path:
    with replace_file(file) as part:
        part.write_text(to_csv(frame, float_format="%.4g"), encoding="utf-8")
    return file
