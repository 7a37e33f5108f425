"""Collect the pages of the documentation site (`make docs`).

The pages come from this folder. Links that lead out of it point to the repository if its address is
set (``[project.urls]`` in pyproject.toml), otherwise they become file names. The reference pages
are generated from the code: commands from their parser, config keys from the JSON schema, columns
from their descriptions, tasks from their cards, the library from docstrings.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tomllib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from tasktransfer.cli import make_parser
from tasktransfer.cli.parsers import iterate_parsers
from tasktransfer.datasets import PACKAGE
from tasktransfer.designs.empathetic import columns as empathetic
from tasktransfer.designs.panel import columns as panel
from tasktransfer.designs.probes import collect as probes
from tasktransfer.designs.probes import intervals
from tasktransfer.designs.transfer.collect.columns_page import sections
from tasktransfer.tables.store import Columns

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

COLUMNS: dict[str, dict[str, Columns]] = {
    "empathetic": empathetic.TABLES | empathetic.STATISTICS,
    "panel": panel.TABLES | panel.STATISTICS,
    "probes": probes.TABLES | intervals.TABLES,
}
"""Tables by design. Transfer's are in docs/columns.md, which `make schemas` writes."""

LIBRARY = (
    "tasktransfer.api",
    "tasktransfer.designs.transfer.frames",
    "tasktransfer.designs.design",
    "tasktransfer.present.declared",
    "tasktransfer.tables.columns",
    "tasktransfer.core.nodes.data",
    "tasktransfer.core.nodes.stage",
    "tasktransfer.core.nodes.evaluation",
    "tasktransfer.tasks.card",
    "tasktransfer.datasets.dataset",
    "tasktransfer.errors",
)
"""Modules for plugins and notebooks."""

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)\s#]+)(#[^)\s]*)?\)")


def main() -> int:
    """Rebuild the folder."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    shutil.copytree(DOCS / "images", OUT / "images")
    for page in sorted(DOCS.rglob("*.md")):
        place = OUT / page.relative_to(DOCS)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(with_links(page.read_text("utf-8"), page), "utf-8")
    decisions = sorted(path for path in (DOCS / "decisions").glob("*.md"))
    lines = [f"- [{_title(path)}]({path.name})" for path in decisions]
    _write("decisions/index.md", "# Decisions\n\nReasons for each design decision.\n", lines)
    _write("reference/commands.md", "# Commands\n", commands(make_parser()))
    for design, schema in CONFIGS.items():
        read = json.loads((ROOT / "workflow" / "schemas" / schema).read_text("utf-8"))
        _write(f"reference/config-{design}.md", f"# Config keys: {design}\n", keys(read))
    for design, tables in COLUMNS.items():
        page = "".join(sections(tables))
        _write(f"reference/columns-{design}.md", f"# Table columns: {design}", [page])
    _write("reference/tasks.md", "# Tasks, their sources and licences\n", tasks())
    _write("reference/library.md", "# Library\n", [f"::: {module}\n" for module in LIBRARY])
    print(f"{OUT}: {sum(1 for _ in OUT.rglob('*.md'))} pages")
    return 0


def address() -> str | None:
    """Return the repository's web address, or None if it is not set yet."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = project.get("urls", {}).get("Repository")
    return None if found is None else str(found).rstrip("/")


def with_links(text: str, page: Path) -> str:
    """Return the text with links out of the folder changed to web addresses or file names."""

    def replaced(link: re.Match[str]) -> str:
        target = (page.parent / link[2]).resolve()
        if target.is_relative_to(DOCS):
            is_name = re.fullmatch(r"(docs/)?[\w/-]+\.md", link[1])
            return f"[{_title(target)}]({link[2]}{link[3] or ''})" if is_name else link[0]
        name = target.relative_to(ROOT).as_posix()
        if web := address():
            return f"[{link[1]}]({web}/blob/main/{name})"
        return link[1] if name in link[1] else f"{link[1]} (`{name}`)"

    return LINK.sub(replaced, text)


def _title(page: Path) -> str:
    return page.read_text("utf-8").splitlines()[0].lstrip("# ")


def _write(name: str, head: str, lines: Iterable[str]) -> None:
    place = OUT / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("\n".join([head, *lines]) + "\n", "utf-8")


def commands(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield a section with the help of each command."""
    for name, sub in islice(iterate_parsers(parser), 1, None):
        yield f"## {name}\n\n```text\n{sub.format_help().rstrip()}\n```\n"


def tasks() -> Iterator[str]:
    """Yield one table of tasks per dataset of the package, from the task cards."""
    for dataset in PACKAGE:
        yield f"## {dataset.name}\n"
        yield "| task | kind | annotations | licence that their source states |"
        yield "|---|---|---|---|"
        for card in dataset.cards:
            name = f"{card.name.replace('_', '_&#8203;')} ({card.short})"  # may be broken there
            cells = (name, card.kind.replace("_", " "), card.citation, card.licence)
            yield f"| {' | '.join(cells)} |"
        yield ""


def keys(schema: dict[str, Any]) -> Iterator[str]:
    """Yield tables of the config's keys and of its sections' keys."""
    yield from _table("The config", schema)
    for name, part in sorted(schema.get("$defs", {}).items()):
        if "properties" in part:
            yield from _table(name, part)


def _table(title: str, part: dict[str, Any]) -> Iterator[str]:
    yield f"## {title}\n"
    yield f"{' '.join(part.get('description', '').split())}\n"
    yield "| key | type | default | meaning |"
    yield "|---|---|---|---|"
    for name, key in part["properties"].items():
        meaning = " ".join(str(key.get("description", "")).split())
        cells = (f"`{name}`", type_of(key), _default(key), meaning)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""


def _default(key: dict[str, Any]) -> str:
    """Return a key's default as text. The keys of a section have a table of their own."""
    if "default" not in key:
        return "required"
    if "$ref" in key and isinstance(key["default"], dict):
        return "its keys' own"
    return f"`{json.dumps(key['default'], ensure_ascii=False)}`"


def type_of(key: dict[str, Any]) -> str:
    """Return a key's type as text, with links to sections of the config."""
    if "$ref" in key:
        name = key["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in key:
        return f"`{json.dumps(key['const'])}`"
    if "enum" in key:
        return ", ".join(f"`{json.dumps(value)}`" for value in key["enum"])
    several = key.get("anyOf") or key.get("oneOf")
    if several:
        return " or ".join(dict.fromkeys(type_of(each) for each in several))
    if key.get("type") == "array":
        return f"list of {type_of(key['items'])}" if key.get("items") else "list"
    if key.get("type") == "object":
        values = key.get("additionalProperties")
        return f"names to {type_of(values)}" if isinstance(values, dict) else "mapping"
    kinds = key.get("type", "any value")
    return kinds if isinstance(kinds, str) else " or ".join(kinds)


if __name__ == "__main__":
    sys.exit(main())
