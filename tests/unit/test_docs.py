"""README and docs can be followed: links resolve and commands exist."""

from __future__ import annotations

import argparse
import re
import shlex
import tomllib
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from documented import FENCE, commands
from tasktransfer import cli

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "config/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "shipped").glob("*.md")),
]
LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")
RULES = {
    name
    for path in [ROOT / "workflow" / "Snakefile", *(ROOT / "workflow").rglob("*.smk")]
    for name in re.findall(r"^rule (\w+):", path.read_text(), re.MULTILINE)
}
MAKE = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site build them, and others."""
    heads = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)|[`*]", r"\1", head).lower() for head in heads]
    kept = re.findall(r'^<a id="([\w-]+)"></a>$', page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head).strip().replace(" ", "-") for head in plain} | {*kept}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text()):
        if re.match(r"(https?|mailto):", link):
            continue
        name, _, anchor = link.partition("#")
        if re.match(r"(\.\./)?reference/", name):
            continue  # made by `make docs`, which checks it
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{link}: there is no {target}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{link}: {target} has no such heading"


CALLS = [(named(page), line) for page in PAGES for line in commands(page)]


def test_there_are_commands() -> None:
    assert len(CALLS) >= 60


@pytest.fixture(scope="module")
def snakemake_parser() -> argparse.ArgumentParser:
    from snakemake.cli import get_argument_parser  # noqa: PLC0415 (a second)

    return get_argument_parser()


@pytest.mark.parametrize(("page", "line"), CALLS)
def test_a_command_exists(
    page: str,
    line: str,
    snakemake_parser: argparse.ArgumentParser,
    capsys: pytest.CaptureFixture[str],
) -> None:
    program, *words = words_of(line)
    try:
        if program == "tasktransfer":
            cli.parse_arguments(words)
        elif program == "snakemake":
            assert set(snakemake_parser.parse_args(words).targets) <= RULES, f"{page}: {line}"
        else:
            assert {word for word in words if "=" not in word} <= {*MAKE}, f"{page}: {line}"
    except SystemExit as ended:
        assert ended.code == 0, f"{page}: {line}: {capsys.readouterr().err}"
    for word in words:
        if word.startswith("workflow/"):
            assert (ROOT / word).exists(), f"{page}: {line}: there is no {word}"


def words_of(line: str) -> list[str]:
    """Return a command's words up to its end in the line, without optional parts."""
    plain = re.sub(r"\[[^]]*\]|->.*", "", line)
    words = shlex.split(plain.replace("...", "x"), comments=True)
    return words[: next((n for n, word in enumerate(words) if word in ("|", ">", "&&")), None)]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_command_within_a_sentence_has_a_name_and_options_that_exist(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sentences may omit required arguments."""
    for code in re.findall(r"`tasktransfer ([^`]+)`", FENCE.sub("", page.read_text())):
        with suppress(SystemExit):
            cli.parse_arguments(words_of(code))
        error = capsys.readouterr().err
        assert not re.search(r"unrecognized|invalid choice", error), f"{code}: {error}"


def test_every_dependency_has_its_use() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text()
    extras = PROJECT["optional-dependencies"].values()
    for requirement in chain(PROJECT["dependencies"], *extras):
        name = re.split(r"[<>=\[;]", requirement)[0]
        if name != PROJECT["name"]:
            assert re.search(rf"(^\| |\W){re.escape(name)}\W", page, re.MULTILINE), name


def test_no_address_replaces_another() -> None:
    """Addresses are in ``[project.urls]`` alone; everything else follows."""
    for page in PAGES:
        assert not re.search(r"OWNER|github\.com/(your|example)", page.read_text()), page


@pytest.mark.xfail(strict=True, reason="[project.urls] is to be set before publishing")
def test_the_addresses_are_set() -> None:
    """Once they are set, this test fails: remove its mark then."""
    assert PROJECT.get("urls", {}).keys() >= {"Repository", "Documentation"}


def test_the_readme_and_how_to_contribute_are_short() -> None:
    for name in ("README.md", "CONTRIBUTING.md"):
        assert len((ROOT / name).read_text().splitlines()) < 150
