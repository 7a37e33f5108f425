"""Files that a study names under `plugins`, and the design that it names."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from small_study import SMALL, parse, refusal

from tasktransfer import designs
from tasktransfer.datasets import DATASETS
from tasktransfer.designs import load_config
from tasktransfer.errors import ConfigError

OUTSIDE = str(Path(__file__).parents[1] / "outside_dataset")
COUNTED = """
from pathlib import Path

with Path("log").open("a") as stream:
    stream.write("once ")
"""
DESIGN = """
from typing import Any
from pydantic import Field
from tasktransfer.config import CommonConfig
from tasktransfer.designs.design import Design

class ToyConfig(CommonConfig):
    rounds: int = Field(default=3, ge=1, description="how often")

def nothing(*_: Any) -> None: ...

DESIGN = Design("toy", ToyConfig, ("joint",), plan=nothing, outputs=nothing, collect=nothing)
"""
COMMON = {key: SMALL[key] for key in ("study", "models")}


@pytest.fixture(autouse=True)
def _clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(designs, "DESIGNS", dict(designs.DESIGNS))
    monkeypatch.setitem(DATASETS, "Errands", DATASETS["Friends"])  # gone again afterwards
    monkeypatch.delitem(DATASETS, "Errands")
    (tmp_path / "data.py").write_text(COUNTED)
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "part.py").write_text("")
    (tmp_path / "toy" / "__init__.py").write_text("from . import part\n" + DESIGN)


def test_a_study_names_tasks_of_a_plugins_dataset() -> None:
    tasks = ["purchase_extraction", "shop_classification"]
    study = SMALL | {"plugins": [OUTSIDE, "data.py"], "datasets": {"Errands": {"tasks": tasks}}}
    config = parse(study | {"training": {"epochs": 1}})
    assert [(each.name, each.tasks) for each in config.datasets] == [("Errands", tuple(tasks))]
    assert "training.epochs: has no value for Errands" in refusal(study)
    assert Path("log").read_text() == "once ", "a plugin is imported once"
    study["datasets"] = {"Errands": {"tasks": ["shop_clasification"]}}
    assert "did you mean 'shop_classification'?" in refusal(study)


def test_a_study_of_a_plugins_design_is_checked_by_its_config() -> None:
    study = COMMON | {"plugins": ["toy"], "design": "toy"}
    Path("study.yaml").write_text(yaml.safe_dump(study | {"rounds": 2}))
    config = load_config("study.yaml")
    assert (config.model_dump()["rounds"], config.plugins) == (2, ("toy",))
    assert "rounds: found 0, expected a number of 1 or more" in refusal(study | {"rounds": 0})
    assert "datasets: unknown key" in refusal(study | {"datasets": {}})


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"design": "transfr"}, ":3: design: unknown design 'transfr' (did you mean 'transfer'?)"),
        ({"design": 3}, ":3: design: found 3, expected text; put it in quotes"),
        ({"plugins": ["absent.py"]}, "plugins[0]: 'absent.py' is no Python file or package"),
        ({"plugins": ["data.py", "empty"]}, "plugins[1]: 'empty' is no Python file"),
        ({"plugins": ["broken.py"]}, "plugins[0]: 'broken.py' cannot be imported (NameError: "),
        ({"plugins": ["ends.py"]}, "plugins[0]: 'ends.py' cannot be imported (SystemExit: 0; "),
        ({"plugins": ["wrong.py"]}, "plugins[0]: its DESIGN is 3: make it a Design"),
        ({"plugins": "data.py"}, ":3: plugins: found 'data.py', expected a list: write [data.py]"),
        ({"plugins": [3]}, "plugins[0]: found 3, expected text"),
        ({"plugins": ["data.py", "data.py"]}, "plugins[1]: 'data.py' duplicates plugins[0]"),
    ],
)
def test_what_is_no_design_or_plugin(keys: dict[str, object], told: str) -> None:
    Path("empty").mkdir()
    Path("broken.py").write_text("nothing_of_that_name\n")
    Path("ends.py").write_text("raise SystemExit(0)\n")
    Path("wrong.py").write_text("DESIGN = 3\n")
    rest = yaml.safe_dump({key: SMALL[key] for key in ("models", "datasets")})
    Path("study.yaml").write_text(f"study: s\n\n{yaml.safe_dump(keys)}{rest}")
    with pytest.raises(ConfigError) as caught:
        load_config("study.yaml")
    assert told in str(caught.value)
    assert "study.yaml:" in str(caught.value)
