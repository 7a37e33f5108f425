"""The documentation site lists every page and every config key, and its guides are short."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SITE = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]
GENERATED = ("reference/", "decisions/index.md")


@pytest.fixture
def reference(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(DOCS))
    monkeypatch.delitem(sys.modules, "config_reference", raising=False)
    import config_reference  # noqa: PLC0415

    return config_reference


def read_schema(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((ROOT / "workflow" / "schemas" / name).read_text("utf-8"))
    return schema


def iterate_pages(nav: Any) -> Iterator[str]:
    """Yield the pages of the navigation in order."""
    if isinstance(nav, str):
        yield nav
    else:
        for each in nav.values() if isinstance(nav, dict) else nav:
            yield from iterate_pages(each)


def test_the_navigation_has_every_page_once() -> None:
    pages = list(iterate_pages(SITE["nav"]))
    assert len(pages) == len(set(pages))
    written = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    written = {page for page in written if not page.startswith("decisions/")}
    assert {page for page in pages if not page.startswith(GENERATED)} == written


def test_keys_are_listed_by_their_full_path(reference: Any) -> None:
    schema = read_schema("config.schema.json")
    paths = [path for path, _ in reference.list_keys(schema, schema["$defs"])]
    assert {"study", "models[].adapter.rank", "training.epochs", "pairs[].source"} <= {*paths}
    assert "datasets.NAME.tasks.NAME.kind" in paths  # a task of one's own files


@pytest.mark.parametrize("design", ["config", "empathetic", "panel", "probes"])
def test_every_key_of_a_design_is_in_a_table(reference: Any, design: str) -> None:
    schema = read_schema(f"{design}.schema.json")
    page = "\n".join(reference.keys(schema))
    for path, _ in reference.list_keys(schema, schema["$defs"]):
        assert f"| `{path}` |" in page or f"| [`{path}`](#{path}) |" in page, path
    for line in page.splitlines():
        if "](#" in line:
            anchor = line.partition("](#")[2].partition(")")[0]
            assert f"{{#{anchor}}}" in page, line


def test_every_key_of_the_commented_config_is_listed(reference: Any) -> None:
    schema = read_schema("config.schema.json")
    listed = {path for path, _ in reference.list_keys(schema, schema["$defs"])}
    config = yaml.safe_load((ROOT / "config.yaml").read_text("utf-8"))
    for section in ("data", "training", "multi_source", "checkpoints"):
        assert {f"{section}.{key}" for key in config[section]} <= listed
    assert {f"models[].{key}" for key in config["models"][0]} <= listed
    assert {*config} <= listed


def test_a_guide_has_at_most_700_words() -> None:
    guides = sorted((DOCS / "how-to").glob("*.md"))
    assert len(guides) >= 8
    for guide in guides:
        assert len(guide.read_text("utf-8").split()) <= 700, guide
