"""docs/glossary.md is followed: texts for users have none of the words that it advises against."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"


def rows() -> list[list[str]]:
    """Return word, meaning and words not to use, for each line of the table."""
    lines = [line for line in GLOSSARY.read_text("utf-8").splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


AVOIDED = [word.strip() for *_, words in rows() for word in words.split(",") if word.strip()]


def texts() -> Iterator[tuple[Path, str]]:
    """Yield the texts for users: captions, documents, and texts in the code with several words."""
    folders = ("docs", "docs/tutorials", "docs/how-to", "docs/explanation")
    pages = (f"{folder}/*.md" for folder in folders)
    for pattern in ("workflow/report/**/*.rst", *pages, "README.md"):
        yield from ((p, p.read_text("utf-8")) for p in ROOT.glob(pattern) if p != GLOSSARY)
    for path in sorted((ROOT / "src" / "tasktransfer").rglob("*.py")):
        yield from ((path, text) for text in strings(path.read_text("utf-8")) if " " in text)


def strings(code: str) -> Iterator[str]:
    """Yield the texts of a module, without its docstrings."""
    tree = ast.parse(code)
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in documents:
            yield node.value


def found(word: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(word)}s?\b", text, re.IGNORECASE) is not None


def test_the_glossary_has_about_25_terms_each_with_a_meaning() -> None:
    assert 20 <= len(rows()) <= 45
    assert all(word and meaning for word, meaning, _ in rows())
    assert len(AVOIDED) >= 15


@pytest.fixture(scope="module")
def seen() -> list[tuple[Path, str]]:
    return list(texts())


@pytest.mark.parametrize("word", AVOIDED)
def test_what_users_see_avoids(word: str, seen: list[tuple[Path, str]]) -> None:
    places = [f"{path.relative_to(ROOT)}: {text[:80]}" for path, text in seen if found(word, text)]
    assert not places


def test_a_word_is_found_in_any_case_and_number() -> None:
    assert found("data set", "Two Data Sets")
    assert not found("data set", "the dataset")
    assert list(strings('"""A data set."""\nx = f"a {y} trial"')) == ["a ", " trial"]
