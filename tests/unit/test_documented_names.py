"""Names of code on the pages exist, also after renames."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from language import list_members

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(
        page
        for page in (ROOT / "docs").rglob("*.md")
        if "decisions" not in page.parts and page.name != "columns.md"
    ),
]
"""Written pages. Decisions are left out, because they record history, also former names."""
FOREIGN = {"gpu_manufacturer", "nvidia_gpu", "request_gpus", "save_to_disk"}
"""Names of other programs."""
FOLDERS = ("src", "workflow", "tests", "benchmarks", "examples")


@cache
def find_words() -> frozenset[str]:
    """Return all identifiers in the project's code and settings."""
    files = [ROOT / "config.yaml", ROOT / "Makefile", ROOT / "pyproject.toml"]
    for folder in FOLDERS:
        files += [file for file in (ROOT / folder).rglob("*") if file.suffix in (".py", ".smk")]
    return frozenset(w for file in files for w in re.findall(r"\w+", file.read_text("utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_in_code_font_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    names = {match[1] for match in re.finditer(r"`([a-z]\w*_\w+)(?:\(\))?`", text)}
    assert not names - find_words() - FOREIGN, page
    for owner, member in re.findall(r"`([A-Z]\w+)\.([a-z_]\w*)", text):
        if members := list_members(owner):
            assert member in members | FOREIGN, f"{page}: {owner}.{member} does not exist"
