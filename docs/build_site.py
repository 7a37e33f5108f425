"""Collect the pages of the documentation site (`make docs`).

The pages come from this folder. Links that lead out of it point to the repository if its address is
set (``[project.urls]`` in pyproject.toml). Otherwise the site gets a page for each linked file, in
the folder ``files``. The reference pages are generated from the code: commands from their parser,
config keys from the JSON schema, columns from their descriptions, tasks from their cards, the
library from docstrings.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from config_reference import keys

from tasktransfer.cli import make_parser
from tasktransfer.cli.groups import GROUPS
from tasktransfer.cli.parsers import iterate_parsers, list_command_summaries
from tasktransfer.datasets import PACKAGE_DATASETS
from tasktransfer.designs.empathetic import frames as empathetic
from tasktransfer.designs.panel import frames as panel
from tasktransfer.designs.probes import frames as probes
from tasktransfer.designs.transfer.columns_page import format_sections

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
OUT = ROOT / "build" / "docs"
"""Input folder of zensical (zensical.toml)."""

CONFIGS = {
    "transfer": "config.schema.json",
    "empathetic": "empathetic.schema.json",
    "panel": "panel.schema.json",
    "probes": "probes.schema.json",
}
"""Schema in workflow/schemas by design."""

FRAMES = {"empathetic": empathetic.FRAMES, "panel": panel.FRAMES, "probes": probes.FRAMES}
"""Frames by design. Transfer's are in docs/columns.md, which `make schemas` writes."""

LIBRARY = (
    "tasktransfer.api",
    "tasktransfer.designs.transfer.frames",
    "tasktransfer.designs.design",
    "tasktransfer.present.declared",
    "tasktransfer.present.columns",
    "tasktransfer.core.nodes.data",
    "tasktransfer.core.nodes.stage",
    "tasktransfer.core.nodes.evaluation",
    "tasktransfer.tasks.card",
    "tasktransfer.datasets.dataset",
    "tasktransfer.errors",
)
"""Modules for plugins and notebooks."""

LANGUAGES = {".py": "python", ".yaml": "yaml", ".json": "json", ".sh": "bash"}
"""Language of a file's code block by suffix."""

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)\s#]+)(#[^)\s]*)?\)")


def main() -> int:
    """Rebuild the folder."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    for folder in ("images", "stylesheets"):
        shutil.copytree(DOCS / folder, OUT / folder)
    linked: set[Path] = set()
    for page in sorted(DOCS.rglob("*.md")):
        _write(get_page_path(page), with_links(page.read_text("utf-8"), page, linked))
    copy_files(linked)
    decisions = sorted(path for path in (DOCS / "decisions").glob("*.md"))
    lines = [f"- [{_title(path)}]({path.name})" for path in decisions]
    _write("decisions/index.md", "# Decisions\n\nReasons for each design decision.\n", lines)
    os.environ["COLUMNS"] = "82"  # argparse wraps its help two columns before the terminal's end
    _write("reference/commands.md", "# Commands\n", commands(make_parser()))
    for design, schema in CONFIGS.items():
        read = json.loads((ROOT / "workflow" / "schemas" / schema).read_text("utf-8"))
        _write(f"reference/config-{design}.md", f"# Config keys: {design}\n", keys(read))
    for design, frames in FRAMES.items():
        page = "".join(format_sections({frame.name: frame.columns for frame in frames}))
        _write(f"reference/columns-{design}.md", f"# Table columns: {design}", [page])
    _write("reference/tasks.md", "# Tasks, their sources and licences\n", tasks())
    _write("reference/library.md", "# Python\n", [f"::: {module}\n" for module in LIBRARY])
    print(f"{OUT}: {sum(1 for _ in OUT.rglob('*.md'))} pages")
    return 0


def address() -> str | None:
    """Return the repository's web address, or None if it is not set yet."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = project.get("urls", {}).get("Repository")
    return None if found is None else str(found).rstrip("/")


def with_links(text: str, page: Path, linked: set[Path]) -> str:
    """Return the text with links out of the folder changed to addresses that work on the site.

    Args:
        text: the page's text.
        page: the page's file in the repository.
        linked: files and folders that need a page on the site; linked ones are added.
    """
    web = address()

    def replaced(link: re.Match[str]) -> str:
        target, anchor = (page.parent / link[2]).resolve(), link[3] or ""
        if not target.is_relative_to(DOCS):
            if web:
                return f"[{link[1]}]({web}/blob/main/{target.relative_to(ROOT).as_posix()}{anchor})"
            linked.add(target)
        is_name = re.fullmatch(r"(\.\./|docs/)*[\w/-]+\.md", link[1])
        text = _title(target) if is_name and target.is_relative_to(DOCS) else link[1]
        start = Path(get_page_path(page)).parent
        return f"[{text}]({Path(os.path.relpath(get_page_path(target), start)).as_posix()}{anchor})"

    return LINK.sub(replaced, text)


def get_page_path(path: Path) -> str:
    """Return the path on the site of a documentation page or of a file of the repository."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    name = path.relative_to(ROOT).as_posix()
    return f"files/{name}" if path.suffix == ".md" else f"files/{name}.md"


def copy_files(linked: set[Path]) -> None:
    """Write a page for each linked file or folder of the repository, and for those they link to."""
    done: set[Path] = set()
    while rest := sorted(linked - done):
        for path in rest:
            _write(get_page_path(path), render_file_page(path, linked))
        done.update(rest)


def render_file_page(path: Path, linked: set[Path]) -> str:
    """Return the Markdown for a file or folder of the repository."""
    if path.suffix == ".md":
        return with_links(path.read_text("utf-8"), path, linked)
    head = f"# {path.name}\n\n`{path.relative_to(ROOT).as_posix()}` in the repository:\n"
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.is_file())
        linked.update(files)
        lines = [f"- [{file.name}]({path.name}/{Path(get_page_path(file)).name})" for file in files]
        return "\n".join([head, *lines])
    if path.suffix == ".ipynb":
        cells = json.loads(path.read_text("utf-8"))["cells"]
        parts = [
            _fence(source, "python") if kind == "code" else with_links(source, path, linked)
            for source, kind in (("".join(cell["source"]), cell["cell_type"]) for cell in cells)
        ]
        return "\n\n".join([head, *parts])
    return f"{head}\n{_fence(path.read_text('utf-8'), LANGUAGES.get(path.suffix, 'text'))}"


def _fence(text: str, language: str) -> str:
    return f"````{language}\n{text.rstrip()}\n````"


def _title(page: Path) -> str:
    return page.read_text("utf-8").splitlines()[0].lstrip("# ")


def _write(name: str, head: str, lines: Iterable[str] = ()) -> None:
    place = OUT / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("\n".join([head, *lines]).rstrip() + "\n", "utf-8")


def commands(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the help of each command, by group as in the help of ``tasktransfer``."""
    summaries = list_command_summaries(parser)
    helps = dict(islice(iterate_parsers(parser), 1, None))
    grouped = {name for names in GROUPS.values() for name in names}
    steps = tuple(name for name in helps if name.split()[0] not in grouped)
    yield "`tasktransfer --help` lists these groups. Each section is the output of `--help`.\n"
    for title, names in {**GROUPS, "Steps": steps}.items():
        yield f"## {title}\n"
        if title == "Steps":
            yield "The workflow runs these steps. You can run one as `tasktransfer job STEP`.\n"
        yield "| command | purpose |\n|---|---|"
        for name in names:
            yield f"| [`{name}`](#{name}) | {summaries[name]} |"
        yield ""
        for first in names:
            for name, sub in helps.items():
                if name == first or name.startswith(f"{first} "):
                    yield f"### {name}\n\n```text\n{sub.format_help().rstrip()}\n```\n"


def tasks() -> Iterator[str]:
    """Yield one table of tasks per dataset of the package, from the task cards."""
    for dataset in PACKAGE_DATASETS:
        yield f"## {dataset.name}\n"
        yield "| task | kind | annotations | licence that their source states |"
        yield "|---|---|---|---|"
        for card in dataset.cards:
            name = f"{card.name.replace('_', '_&#8203;')} ({card.short})"  # may be broken there
            cells = (name, card.kind.replace("_", " "), card.citation, card.licence)
            yield f"| {' | '.join(cells)} |"
        yield ""


if __name__ == "__main__":
    sys.exit(main())
