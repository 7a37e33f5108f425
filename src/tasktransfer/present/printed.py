"""One table as four files: Parquet and CSV with every digit, Markdown and LaTeX for reading.

Markdown and LaTeX print a ``Layout`` with the formatted texts of the numbers, so that both have the
same content. This module does not use tabulate, which pads the cells of Markdown and supports
neither rules between blocks nor long titles in LaTeX.

A spreadsheet treats a cell that begins with ``=``, ``+``, ``-`` or ``@`` as a formula, which may
start programs or send the table elsewhere. Names and labels come from other people's datasets,
models and archives, so such texts get a leading apostrophe in CSV. Numbers stay numbers. Archives
of the FETA challenge do not use this module, because their format requires unchanged answers.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pandas.api.types import is_object_dtype, is_string_dtype

from tasktransfer.errors import escape_line
from tasktransfer.files import replace_file
from tasktransfer.present.numbers import format_count, format_score, is_missing
from tasktransfer.results.store import Metadata, write_arrow

_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
"""Full-width signs also begin formulas in Chinese, Japanese and Korean spreadsheets."""
_NUMBER = re.compile(r"[+-]?(\d[\d,]*\.?\d*|\.\d+)([eE][+-]?\d+)?")


def to_csv(frame: pd.DataFrame, *, float_format: str | None = None) -> str:
    """Convert a frame to CSV without its index."""
    safe = frame.set_axis([escape_formula(str(name)) for name in frame.columns], axis=1)
    for place in range(safe.shape[1]):
        column = safe.iloc[:, place]
        if isinstance(column.dtype, pd.CategoricalDtype):
            column = column.astype(object)
        if is_object_dtype(column.dtype) or is_string_dtype(column.dtype):
            safe.isetitem(place, list(map(escape_formula, column)))
    return str(safe.to_csv(index=False, lineterminator="\n", float_format=float_format))


def escape_formula(value: Any) -> Any:
    """Prefix a text with an apostrophe if a spreadsheet would run it as a formula.

    Its line breaks become line feeds. Values that are not texts are returned unchanged.
    """
    if not isinstance(value, str):
        return value
    # A carriage return alone would end the line: Python's csv does not quote it.
    text = value.replace("\r\n", "\n").replace("\r", "\n")
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text


Line = tuple[str, ...]
Entry = tuple[Line, ...]
"""Lines of one entry: ours, published, difference."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of a table in Markdown and LaTeX.

    Args:
        head: the columns' titles; a line feed breaks a long one.
        numbers: index of the first right-aligned column.
        blocks: groups of entries, separated by rules.
    """

    head: Line
    numbers: int
    blocks: tuple[tuple[Entry, ...], ...]

    def drop_columns(self, *columns: int) -> Layout:
        """Return the layout without the text columns at given indices.

        Each entry keeps only its first line.
        """
        keep = [index for index in range(len(self.head)) if index not in columns]
        blocks = tuple(
            tuple((tuple(entry[0][index] for index in keep),) for entry in block)
            for block in self.blocks
        )
        head = tuple(self.head[index] for index in keep)
        return Layout(head, self.numbers - sum(c < self.numbers for c in columns), blocks)


def write_table(
    folder: Path,
    name: str,
    frame: pd.DataFrame,
    metadata: Metadata | None,
    caption: str,
    *,
    title: str = "",
    layout: Layout | None = None,
    described: Mapping[str, str] | None = None,
) -> list[Path]:
    """Write ``<name>.parquet``, ``.csv``, ``.md`` and ``.tex``, each atomically.

    Args:
        folder: folder of the files.
        name: the files' name and the LaTeX label (``tab:<name>``).
        frame: the rows. CSV and Parquet get all columns, followed by ``study`` and ``synthetic``.
        metadata: metadata for the Parquet footer. None for numbers that do not belong to a study,
            such as a paper's; then the two columns are left out.
        caption: plain text, for Markdown and LaTeX.
        title: title before the caption in Markdown, for example "Table 2".
        layout: layout of Markdown and LaTeX; by default the frame with two decimals.
        described: column → meaning, for the Parquet footer.
    """
    full = _add_study_columns(frame, metadata)
    write_arrow(folder / f"{name}.parquet", _build_arrow_table(full, described or {}), metadata)
    texts = format_table_files(name, frame, metadata, caption, title=title, layout=layout)
    for ending, text in texts.items():
        with replace_file(folder / f"{name}.{ending}") as part:
            part.write_text(text, encoding="utf-8")
    return [folder / f"{name}.{ending}" for ending in ("parquet", *texts)]


def format_table_files(
    name: str,
    frame: pd.DataFrame,
    metadata: Metadata | None,
    caption: str,
    *,
    title: str = "",
    layout: Layout | None = None,
) -> dict[str, str]:
    """Format the files of a table by ending, with the arguments of ``write_table``."""
    shown = layout or build_plain_layout(frame)
    return {
        "csv": to_csv(_add_study_columns(frame, metadata)),
        "md": to_markdown(shown, caption, title),
        "tex": to_latex(shown, caption, name),
    }


def _add_study_columns(frame: pd.DataFrame, metadata: Metadata | None) -> pd.DataFrame:
    if metadata is None:
        return frame
    return frame.assign(study=metadata.study, synthetic=_flag_synthetic(frame, metadata))


def _flag_synthetic(frame: pd.DataFrame, metadata: Metadata) -> pd.Series | bool:
    """Return whether each row is from synthetic data, by dataset if there is such a column."""
    if "dataset" not in frame:
        return metadata.synthetic
    return frame["dataset"].map(metadata.is_synthetic).astype(bool)


def build_plain_layout(frame: pd.DataFrame) -> Layout:
    """Return a layout of all columns, with two decimals for floats."""
    numeric = [pd.api.types.is_numeric_dtype(frame[name]) for name in frame.columns]
    entries = tuple((tuple(_format_plain(v) for v in row),) for row in frame.to_numpy(dtype=object))
    # Columns are right-aligned after the last text column.
    last_text = max((index for index, yes in enumerate(numeric) if not yes), default=-1)
    return Layout(tuple(map(str, frame.columns)), last_text + 1, (entries,) if entries else ())


def _format_plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if is_missing(value) or isinstance(value, float):
        return format_score(value)
    return format_count(value) if isinstance(value, int) else str(value)


def group_blocks(entries: Sequence[tuple[str, Entry]]) -> tuple[tuple[Entry, ...], ...]:
    """Convert (block, entry) pairs to ``Layout.blocks``, joining neighbours of one block."""
    groups = itertools.groupby(entries, key=lambda entry: entry[0])
    return tuple(tuple(entry for _, entry in group) for _, group in groups)


def _build_arrow_table(frame: pd.DataFrame, described: Mapping[str, str]) -> pa.Table:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    fields = [
        field.with_metadata({"description": described[field.name]})
        if field.name in described
        else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def to_markdown(layout: Layout, caption: str, title: str = "") -> str:
    """Convert the table to GitHub Markdown, with its caption above."""
    width = len(layout.head)
    lines = [
        f"**{title}.** {caption}" if title else caption,
        "",
        _format_markdown_row(text.replace("\n", " ") for text in layout.head),
        "|" + "---|" * layout.numbers + "---:|" * (width - layout.numbers),
    ]
    for block in layout.blocks:
        lines += [_format_markdown_row(line) for entry in block for line in entry]
    return "\n".join(lines) + "\n"


_MARKDOWN = str.maketrans(
    {"\\": "\\\\", "|": "\\|", "*": "\\*", "\n": " ", "\r": " ", "\t": " ", "<": "&lt;"}
)
_ENTITY = re.compile(r"&(?=#?\w+;)")


def _format_markdown_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(map(_escape_markdown, cells)) + " |"


def _escape_markdown(cell: str) -> str:
    """Escape plain text for a Markdown cell, so that it has no markup, links or images."""
    text = _ENTITY.sub("&amp;", cell).translate(_MARKDOWN)
    return escape_line(text.replace("](", "]\\("))


def to_latex(layout: Layout, caption: str, name: str) -> str:
    """Convert the table to LaTeX that is at most as wide as the text.

    It requires the packages booktabs and graphicx, and works with pdflatex, xelatex and lualatex.
    """
    columns = "l" * layout.numbers + "r" * (len(layout.head) - layout.numbers)
    lines = [
        "% needs \\usepackage{booktabs,graphicx}",
        "\\begin{table*}",
        "\\centering",
        "\\footnotesize",
        "\\setlength{\\tabcolsep}{4pt}",
        f"\\caption{{{escape_latex(caption)}}}",
        f"\\label{{tab:{name}}}",
        "\\smallskip",
        # A table that is wider than the text is scaled down.
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%",
        f"\\begin{{tabular}}{{{columns}}}",
        "\\toprule",
        *_format_latex_head(layout.head),
    ]
    for block in layout.blocks:
        lines.append("\\midrule")
        for index, entry in enumerate(block):
            if index and len(entry) > 1:
                lines.append("\\addlinespace[2pt]")
            lines += [_format_latex_row(line) for line in entry]
    lines += ["\\bottomrule", "\\end{tabular}}", "\\end{table*}"]
    return "\n".join(lines) + "\n"


def _format_latex_head(head: Line) -> list[str]:
    """Format the header in LaTeX, one row per line of the titles, aligned at the bottom."""
    parts = [text.split("\n") for text in head]
    deepest = max(map(len, parts))
    padded = [[""] * (deepest - len(part)) + part for part in parts]
    return [_format_latex_row(row) for row in zip(*padded, strict=True)]


def _format_latex_row(cells: Sequence[str]) -> str:
    # Without the braces, a cell that begins with [ or * would be an option of the last row.
    row = " & ".join(map(escape_latex, cells)) + " \\\\"
    return "{}" + row if row.startswith(("[", "*")) else row


SYMBOLS = {
    "σ": "$\\sigma$",
    "Δ": "$\\Delta$",
    "†": "$^{\\dagger}$",
    "‡": "$^{\\ddagger}$",
    "→": "$\\rightarrow$",
    "−": "$-$",
    "×": "$\\times$",
    "±": "$\\pm$",
    "≤": "$\\leq$",
    "≥": "$\\geq$",
    "∞": "$\\infty$",
    "·": "$\\cdot$",
    "–": "--",
}
"""Characters that not every font of LaTeX has, and their commands."""
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
    "|": "\\textbar{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "\n": " ",
    "\r": " ",
    "\t": " ",
    **SYMBOLS,
}


def escape_latex(text: str) -> str:
    """Escape plain text for LaTeX, including control characters."""
    visible = "".join(c if c in _LATEX else escape_line(c) for c in text)
    return "".join(_LATEX.get(character, character) for character in visible)
