"""docs/papers.md names what the designs declare, and leaves nothing of the papers out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from tasktransfer.cli import make_parser
from tasktransfer.cli.parsers import list_command_summaries
from tasktransfer.core.architecture import ArchitectureKind
from tasktransfer.designs.empathetic import shown as empathetic
from tasktransfer.designs.empathetic.config import Read
from tasktransfer.designs.empathetic.methods import FIXED, LARGE, parse_prepend
from tasktransfer.designs.panel import shown as panel
from tasktransfer.designs.panel.config import METHODS
from tasktransfer.designs.probes import shown as probes
from tasktransfer.present.declared import Figure, Table

ROOT = Path(__file__).resolve().parents[2]
SHOWN: dict[str, tuple[tuple[Table | Figure, ...], tuple[str, ...]]] = {
    "Empathetic responses": ((*empathetic.TABLES, *empathetic.FIGURES), (*FIXED, *LARGE)),
    "A panel of experts": ((*panel.TABLES, *panel.FIGURES), METHODS),
    "What encoders know": ((*probes.TABLES, *probes.FIGURES), get_args(ArchitectureKind)),
}
"""Section → what its design shows, and its methods."""


def read_sections() -> dict[str, set[str]]:
    """Return the title of each section and the names in the last column of its table."""
    text = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    sections = {}
    for section in text.split("\n## ")[1:]:
        title, *lines = section.splitlines()
        cells = [line.strip("|").split("|")[-1] for line in lines if line.startswith("|")]
        sections[title] = {name for cell in cells for name in re.findall("`([^`]+)`", cell)}
    return sections


def test_keys_in_the_column_of_states_exist() -> None:
    text = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("|")]
    states = [line.strip("|").split("|")[1] for line in lines]
    names = {name for state in states for name in re.findall("`([^`]+)`", state)}
    keys = {name for name in names if re.fullmatch(r"[a-z_.\[\]]+", name)}
    assert keys == {"brought", "models[].architecture.vectors", "probes.human_judgements"}
    schemas = [
        json.loads((ROOT / "workflow" / "schemas" / f"{design}.schema.json").read_text("utf-8"))
        for design in ("empathetic", "panel", "probes")
    ]
    known = {key for schema in schemas for key in _list_property_names(schema)}
    assert {part.removesuffix("[]") for key in keys for part in key.split(".")} <= known
    # The page on the panel describes this file; the others are datasets of data.releases.
    assert names - keys - {"generated/<domain>.jsonl"} <= {*get_args(Read)}


def _list_property_names(value: Any) -> Iterator[str]:
    """Yield the names of all keys in a schema."""
    if isinstance(value, dict):
        yield from value.get("properties", {})
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        yield from _list_property_names(each)


@pytest.mark.parametrize("title", SHOWN)
def test_the_page_names_what_is_declared_and_every_table_of_the_paper(title: str) -> None:
    shown, methods = SHOWN[title]
    names, named = {each.name for each in shown}, read_sections()[title]
    commands = {f"tasktransfer {name}" for name in list_command_summaries(make_parser())}
    prepended = {name for name in named if parse_prepend(name)}
    assert named <= names | {*methods} | commands | prepended
    of_paper = {name for name in names if re.fullmatch(r"table\d", name)}
    assert of_paper | {*methods} <= named
