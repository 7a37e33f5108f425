"""Studies with the records in shipped/, without their data and models."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tasktransfer import cli
from tasktransfer.designs import load_config, open_study
from tasktransfer.operate.commons.isolated import unpack_records
from tasktransfer.operate.merge import merge_results
from tasktransfer.results.study import Study
from transfer_frames import write_collected_tables, write_statistics

ROOT = Path(__file__).parents[1]


def signed(value: float, form: str = "+.1f") -> str:
    """Format a number as on a page, with a true minus sign."""
    return f"{value:{form}}".replace("-", "−")


def list_lines(section: str, pattern: str) -> list[list[str]]:
    """Return the cells of the lines of a page's table that match a pattern."""
    return [line.strip("| ").split(" | ") for line in re.findall(pattern, section, re.MULTILINE)]


def merged(pack: str, preset: str, results: Path, **changes: Any) -> Study:
    """Merge a pack into an empty folder, and return the preset's study.

    Args:
        pack: name of a file in shipped/.
        preset: name of a file in workflow/presets/.
        results: results folder to create.
        changes: keys of the config that differ from the preset.
    """
    config = ROOT / "workflow" / "presets" / preset
    models = [model.model_dump(mode="json") for model in load_config(config).models]
    elsewhere = [str(results.parent / Path(model["checkpoint"]).name) for model in models]
    there = {
        "results": str(results),
        "data": {"release": str(results.parent / "no release")},
        "models": [
            {**model, "checkpoint": place} for model, place in zip(models, elsewhere, strict=True)
        ],
        **changes,
    }
    with unpack_records(ROOT / "shipped" / pack, load_config(config, there)) as records:
        opened = open_study(config, there, need_inputs=False)
        assert merge_results(opened, records)["counts"]["rejected"] == 0
    return open_study(config, there, need_inputs=False)


def build_shipped_tables(pack: str, preset: str, folder: Path) -> Study:
    """Merge a pack into an empty folder, write all tables, and return the preset's study.

    The config stays as it is, because a recipe needs the size of the model, which the pack knows by
    the model's name. Neither the model nor the data are there.
    """
    config, results = ROOT / "workflow" / "presets" / preset, folder / "results"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        words = ["--config", str(config), "--set", f"results={results}"]
        assert cli.main(["merge", str(ROOT / "shipped" / pack), *words]) == 0
        study = open_study(str(config), {"results": str(results)}, need_inputs=False)
        write_collected_tables(study)
        write_statistics(study)
    return study
