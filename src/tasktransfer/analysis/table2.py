"""Table 2 of the paper: aggregate transfer per dataset, model and algorithm, as CSV, Markdown,
LaTeX. Rows over incomplete cells carry a dagger and their counts."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from tasktransfer.analysis.names import algorithm_label, synthetic_mark
from tasktransfer.analysis.tables import Metadata
from tasktransfer.records import replacing

_HEAD = (
    "Dataset",
    "Model",
    "Algorithm",
    "Average score (σ)",
    "Average Δ (σ)",
    "Top-1 score",
    "Top-1 Δ",
    "Bottom-1 score",
    "Bottom-1 Δ",
    "Cells",
)
_DASH = "–"


def write_table2(folder: Path, aggregates: pd.DataFrame, metadata: Metadata) -> list[Path]:
    """Write table2.csv (full precision), table2.md and table2.tex, each atomically."""
    csv = aggregates.assign(study=metadata.study, synthetic=metadata.synthetic)
    texts = {
        "table2.csv": csv.to_csv(index=False, lineterminator="\n"),
        "table2.md": to_markdown(aggregates, metadata),
        "table2.tex": to_latex(aggregates, metadata),
    }
    for name, text in texts.items():
        with replacing(folder / name) as part:
            part.write_text(text, encoding="utf-8")
    return [folder / name for name in texts]


def caption(aggregates: pd.DataFrame, metadata: Metadata) -> str:
    """What the table shows, how sigma is defined, and what is not complete."""
    most = max(aggregates["n_seeds"], default=0)
    text = (
        f"{synthetic_mark(metadata)}Aggregate single-source transfer of study {metadata.study}: "
        "average over all ordered (source, target) pairs, and over targets of the best (top-1, at "
        "least the baseline) and worst (bottom-1) source, chosen after averaging over seeds. "
        "Scores are 0-100, Δ is against the baseline of the same model, target and seed. "
        f"σ: sample standard deviation over seeds (up to {most}) of the average within one seed."
    )
    if not aggregates["complete"].all():
        text += " †: computed from fewer cells than planned (cells present/expected)."
    return text


def to_markdown(aggregates: pd.DataFrame, metadata: Metadata) -> str:
    """The table as GitHub Markdown, its caption above."""
    rows = [_cells(row) for row in aggregates.to_dict("records")]
    lines = [
        f"**Table 2.** {caption(aggregates, metadata)}",
        "",
        "| " + " | ".join(_HEAD) + " |",
        "|" + "---|" * 3 + "---:|" * (len(_HEAD) - 3),
    ]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def to_latex(aggregates: pd.DataFrame, metadata: Metadata) -> str:
    """The table in LaTeX; the document needs the package booktabs."""
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{table*}",
        "\\centering",
        "\\small",
        "\\begin{tabular}{lll" + "r" * (len(_HEAD) - 3) + "}",
        "\\toprule",
        " & ".join(map(escape, _HEAD)) + " \\\\",
    ]
    dataset = None
    for row in aggregates.to_dict("records"):
        if row["dataset"] != dataset:
            lines.append("\\midrule")
            dataset = row["dataset"]
        lines.append(" & ".join(map(escape, _cells(row))) + " \\\\")
    lines += [
        "\\bottomrule",
        "\\end{tabular}",
        f"\\caption{{{escape(caption(aggregates, metadata))}}}",
        "\\label{tab:aggregate-transfer}",
        "\\end{table*}",
    ]
    return "\n".join(lines) + "\n"


_LATEX = {
    "\\": "\\textbackslash{}",
    "&": "\\&",
    "%": "\\%",
    "$": "\\$",
    "#": "\\#",
    "_": "\\_",
    "{": "\\{",
    "}": "\\}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "σ": "$\\sigma$",
    "Δ": "$\\Delta$",
    "†": "$^{\\dagger}$",
    "→": "$\\rightarrow$",
    "−": "$-$",
    "–": "--",
}


def escape(text: str) -> str:
    """Plain text to LaTeX."""
    return "".join(_LATEX.get(character, character) for character in text)


def _cells(row: Mapping[Hashable, Any]) -> list[str]:
    """One row as texts, in the order of the head."""
    mark = "" if row["complete"] else "†"
    return [
        str(row["dataset"]),
        str(row["model"]),
        algorithm_label(str(row["algorithm"])) + mark,
        _with_sigma(row["average_score"], row["average_sigma"], ".2f"),
        _with_sigma(row["average_delta"], row["average_delta_sigma"], "+.2f"),
        _number(row["top1_score"], ".2f"),
        _number(row["top1_delta"], "+.2f"),
        _number(row["bottom1_score"], ".2f"),
        _number(row["bottom1_delta"], "+.2f"),
        f"{row['n_cells']}/{row['n_expected']}{mark}",
    ]


def _with_sigma(value: object, sigma: object, form: str) -> str:
    number = _number(value, form)
    spread = _number(sigma, ".2f")
    return number if _DASH in (number, spread) else f"{number} ({spread})"


def _number(value: object, form: str) -> str:
    """A number with a true minus sign and no negative zero; a dash for NaN."""
    if not isinstance(value, float) or math.isnan(value):
        return _DASH
    text = format(value, form)
    if float(text) == 0:
        text = text.replace("-", "+" if "+" in form else "")
    return text.replace("-", "−")
