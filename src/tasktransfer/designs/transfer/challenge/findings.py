"""What is wrong with a submission: each finding with its file and line, all of them kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tasktransfer.errors import escape_line

SHOWN_PER_FILE = 10
"""How many findings of one file are printed; the JSON report has all."""

EXCERPT = 60
"""Most characters of a submission's own text that a message repeats."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One error or warning.

    ``file`` is the path inside the archive ("" for the archive itself), ``line`` counts from 1
    (None: no line), ``kind`` is one of a few fixed names, for example ``out-of-range``, and
    ``text`` says what is wrong and what would be right.
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
    """The errors and warnings about one submission, in the order in which they were met."""

    errors: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)

    def error(self, file: str, line: int | None, kind: str, text: str) -> None:
        """Note what makes the submission invalid."""
        self.errors.append(Finding(escape_line(file), line, kind, escape_line(text)))

    def warn(self, file: str, line: int | None, kind: str, text: str) -> None:
        """Note what is accepted and should not be there."""
        self.warnings.append(Finding(escape_line(file), line, kind, escape_line(text)))

    def warn_of_lines(self, file: str, kind: str, text: str, lines: list[int]) -> None:
        """One warning about all ``lines`` that have the same peculiarity, if there are any."""
        if lines:
            self.warn(file, lines[0], kind, f"{len(lines):,} {text}; this is the first")


def listed(findings: Iterable[Finding], per_file: int = SHOWN_PER_FILE) -> list[str]:
    """A line for each finding, at most ``per_file`` a file; then how many more there are."""
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


def excerpt(text: str) -> str:
    """A piece of a submission, quoted for a message, cut where it is long."""
    return f"'{escape_line(text if len(text) <= EXCERPT else f'{text[:EXCERPT]}...')}'"
