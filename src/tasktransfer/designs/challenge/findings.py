"""Findings on a submission: all errors and warnings, each with its file and line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tasktransfer.errors import escape_line, format_quantity

SHOWN_PER_FILE = 10
"""Maximum number of printed findings per file; the JSON report has all."""

EXCERPT = 60
"""Maximum number of characters that a message quotes from a submission."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One error or warning.

    ``file`` is the path inside the archive ("" for the archive itself), ``line`` counts from 1
    (None without a line), ``kind`` is one of a few fixed names, for example ``out-of-range``, and
    ``text`` states the problem and the remedy in two sentences.
    """

    file: str
    line: int | None
    kind: str
    text: str

    def __str__(self) -> str:
        where = ":".join(str(part) for part in (self.file, self.line) if part)
        return f"{where}: {self.text}" if where else self.text


@dataclass(slots=True)
class Findings:
    """Errors and warnings about one submission, in the order in which they were found."""

    errors: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)

    def add_error(self, file: str, line: int | None, kind: str, text: str) -> None:
        """Add a problem that makes the submission invalid."""
        self.errors.append(Finding(escape_line(file), line, kind, escape_line(text)))

    def add_warning(self, file: str, line: int | None, kind: str, text: str) -> None:
        """Add a problem that is accepted but should be fixed."""
        self.warnings.append(Finding(escape_line(file), line, kind, escape_line(text)))

    def add_line_warning(self, file: str, kind: str, text: str, lines: list[int]) -> None:
        """Add one warning for a problem of several lines, which names the first line.

        Nothing is added if the list is empty. The warning says how many further lines there are.
        """
        if lines:
            more = len(lines) - 1
            lines_text = format_quantity(more, "more line")
            also = f" The file has this problem in {lines_text}." if more else ""
            self.add_warning(file, lines[0], kind, text + also)


def format_findings(findings: Iterable[Finding], per_file: int = SHOWN_PER_FILE) -> list[str]:
    """Return at most ``per_file`` findings per file as lines, and the number of omitted ones."""
    by_file: dict[str, list[Finding]] = {}
    for finding in findings:
        by_file.setdefault(finding.file, []).append(finding)
    lines: list[str] = []
    for file, of_file in by_file.items():
        of_file.sort(key=lambda finding: (finding.line is None, finding.line or 0))
        lines += [f"  {finding}" for finding in of_file[:per_file]]
        more = Counter(finding.kind for finding in of_file[per_file:])
        if more:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in more.items())
            where = f"{file}: " if file else ""
            lines.append(f"  {where}... and {more.total():,} more ({kinds})")
    return lines


def quote_excerpt(text: str) -> str:
    """Quote text of a submission for a message, truncated to ``EXCERPT`` characters."""
    return f"'{escape_line(text if len(text) <= EXCERPT else f'{text[:EXCERPT]}...')}'"
