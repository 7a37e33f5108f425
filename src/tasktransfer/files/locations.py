"""Locations in files as ``file:line``, which terminals and editors turn into links."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def format_location(file: str | Path, line: int | None = None, column: int | None = None) -> str:
    """Format ``file:line:column``, numbered from 1, without numbers that are None."""
    return ":".join(str(part) for part in (file, line, column) if part is not None)


def format_problem(place: str | Path, problem: str, remedy: str = "") -> str:
    """Format an error message, ``place: Problem. Remedy.``, from its parts.

    Their first letters may be small, and their full stops missing.
    """
    sentences = [
        f"{text[0].upper()}{text[1:].removesuffix('.')}." for text in (problem, remedy) if text
    ]
    return f"{place}: {' '.join(sentences)}"


def format_missing_columns(columns: Sequence[str]) -> str:
    """Describe one or several missing columns in a sentence."""
    names = ", ".join(columns)
    return (
        f"The column {names} is missing."
        if len(columns) == 1
        else f"The columns {names} are missing."
    )
