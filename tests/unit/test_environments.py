"""Environments and container have one set of pins; citation and deployment files are valid."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tasktransfer import __version__

ROOT = Path(__file__).resolve().parents[2]
PINS = dict(
    line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line
)
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=\[]", requirement)[0] for requirement in requirements}


@pytest.mark.parametrize(
    ("file", "extras"),
    [("figures.yaml", []), ("train.yaml", ["adapters", "eight-bit", "gguf", "train"])],
)
def test_an_environment_names_the_package_and_pins_as_the_constraints(
    file: str, extras: list[str]
) -> None:
    package, *pins = read(f"envs/{file}")["dependencies"][-1]["pip"]
    named = f"[{','.join(extras)}]" if extras else ""
    assert package == f"tasktransfer{named}=={__version__}"
    for pin in pins:
        name, version = pin.split("==")
        assert PINS.get(name) == version, f"{file}: {pin}, constraints: {PINS.get(name)}"
    of_extras = [PROJECT["optional-dependencies"][extra] for extra in extras]
    assert names(sum(of_extras, PROJECT["dependencies"])) == names(pins)


def test_everything_asked_for_is_pinned() -> None:
    asked = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["train"]]
    assert names(asked) <= PINS.keys()


def test_figures_need_no_torch() -> None:
    heavy = {"torch", "transformers", "tokenizers", "safetensors", "datasets"}
    assert not heavy & names(PROJECT["dependencies"])


def test_the_container_is_built_from_the_constraints() -> None:
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
    steps = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert steps[0].startswith("FROM python:3.11")
    kept = {
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] == "!"
    }
    for step in steps:
        word, *rest = shlex.split(step)
        if word == "COPY":
            assert all((ROOT / source).exists() for source in rest[:-1]), step
            assert set(rest[:-1]) <= kept, step
        if word == "RUN":
            assert "--constraint constraints.txt" in step, step
            assert "==" not in step, step  # a second place of pins


def test_snakemake_has_one_floor() -> None:
    (asked,) = (one for one in PROJECT["dependencies"] if one.startswith("snakemake"))
    floor = re.match(r"snakemake>=([\d.]+),<10$", asked)
    assert floor is not None
    assert f'min_version("{floor[1]}")' in (ROOT / "workflow" / "Snakefile").read_text()


def test_citation() -> None:
    citation = read("CITATION.cff")
    required = {"cff-version", "message", "title", "authors"}  # by the format's schema
    assert required <= citation.keys()
    assert citation["version"] == __version__
    assert citation["license"] == PROJECT["license"]
    assert len(citation["references"]) == 4  # a paper for each study
    for paper in citation["references"]:
        assert {"type", "title", "authors", "year"} <= paper.keys()
    assert "FETA" in citation["references"][0]["title"]


def test_the_catalog_finds_a_standardized_workflow() -> None:
    """As required by the README of snakemake-workflow-catalog."""
    assert (ROOT / "workflow" / "Snakefile").is_file()
    assert (ROOT / "config" / "README.md").is_file()
    usage = read(".snakemake-workflow-catalog.yml")["usage"]
    assert usage["software-stack-deployment"]["conda"] is True
    flags = shlex.split(usage["mandatory-flags"]["flags"])
    profile = read("workflow/profiles/default/config.yaml")
    assert flags[flags.index("--scheduler") + 1] == profile["scheduler"]
    assert {flag.removeprefix("--") for flag in flags if flag.startswith("--")} <= profile.keys()
    start = flags.index("--rerun-triggers") + 1
    assert flags[start:] == profile["rerun-triggers"]
