"""Files that a study names under `plugins`, and its design."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from small_study import SMALL, parse, refusal

from tasktransfer import designs
from tasktransfer.config import Document
from tasktransfer.core.identity import VERSIONS
from tasktransfer.core.nodes import Evaluation, Fit
from tasktransfer.datasets import DATASETS, build_data_node
from tasktransfer.designs import load_config, validate_config
from tasktransfer.designs.entries import add_entries
from tasktransfer.errors import ConfigError
from tasktransfer.evaluation.measures import compute_measures
from tasktransfer.metrics.measures import MEASURES

OUTSIDE = str(Path(__file__).parents[1] / "outside_dataset")
COUNTED = """
from pathlib import Path

with Path("log").open("a") as stream:
    stream.write("once ")

DATASETS = []
"""
DESIGN = """
from typing import Any
from pydantic import Field
from tasktransfer.config import CommonConfig
from tasktransfer.designs.design import Design

class ToyConfig(CommonConfig):
    rounds: int = Field(default=3, ge=1, description="how often")

def nothing(*_: Any) -> None: ...

DESIGN = Design("toy", ToyConfig, ("joint",), plan=nothing, analysis=nothing)
"""
BROUGHT = (
    DESIGN
    + """
from tasktransfer.metrics.measures import Measure

def half(predicted: Any, gold: Any) -> float:
    return float((predicted == gold).mean() / 2)

"""
)
"""What a design may bring follows, as ``Design``'s arguments."""
COMMON = {key: SMALL[key] for key in ("study", "models")}


@pytest.fixture(autouse=True)
def _clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(designs, "DESIGNS", dict(designs.DESIGNS))
    monkeypatch.setitem(MEASURES, "half", MEASURES["accuracy"])
    monkeypatch.delitem(MEASURES, "half")
    for entry in (("measure", "half"), ("recipe", "mine")):
        monkeypatch.setitem(VERSIONS, entry, 1)
        monkeypatch.delitem(VERSIONS, entry)
    (tmp_path / "data.py").write_text(COUNTED)
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "part.py").write_text("")
    (tmp_path / "toy" / "__init__.py").write_text("from . import part\n" + DESIGN)


def test_a_study_names_tasks_of_a_plugins_dataset() -> None:
    tasks = ["purchase_extraction", "shop_classification"]
    study = SMALL | {"plugins": [OUTSIDE, "data.py"], "datasets": {"Errands": {"tasks": tasks}}}
    config = parse(study | {"training": {"epochs": 1}})
    assert [(each.name, each.tasks) for each in config.datasets] == [("Errands", tuple(tasks))]
    assert "training.epochs: The key has no value for Errands" in refusal(study)
    assert Path("log").read_text() == "once ", "a plugin is imported once"
    study["datasets"] = {"Errands": {"tasks": ["shop_clasification"]}}
    assert "Did you mean 'shop_classification'?" in refusal(study)


def test_a_study_of_a_plugins_design_is_checked_by_its_config() -> None:
    study = COMMON | {"plugins": ["toy"], "design": "toy"}
    Path("study.yaml").write_text(yaml.safe_dump(study | {"rounds": 2}))
    config = load_config("study.yaml")
    assert (config.model_dump()["rounds"], config.plugins) == (2, ("toy",))
    assert "rounds: The value is 0, but it must be a number of at least 1" in refusal(
        study | {"rounds": 0}
    )
    assert "datasets: The key 'datasets' is unknown" in refusal(study | {"datasets": {}})


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (
            {"design": "transfr"},
            ":3: design: The design 'transfr' is unknown. Did you mean 'transfer'?",
        ),
        ({"design": 3}, ":3: design: The value is 3, but it must be text. Put the value in quotes"),
        (
            {"plugins": ["absent.py"]},
            "plugins[0]: 'absent.py': The path is not a Python file or package",
        ),
        ({"plugins": ["ends.py"]}, "plugins[0]: 'ends.py' cannot be imported (SystemExit: 0; "),
        (
            {"plugins": ["wrong.py"]},
            "plugins[0]: 'wrong.py': The value of DESIGN is 3, but it must be a Design",
        ),
        (
            {"plugins": "data.py"},
            ":3: plugins: The value is 'data.py', but it must be a list. Write [data.py]",
        ),
        ({"plugins": [3]}, "plugins[0]: The value is 3, but it must be text"),
        ({"plugins": ["data.py", "data.py"]}, "plugins[1]: 'data.py' duplicates plugins[0]"),
    ],
)
def test_what_is_no_design_or_plugin(keys: dict[str, object], told: str) -> None:
    Path("ends.py").write_text("raise SystemExit(0)\n")
    Path("wrong.py").write_text("DESIGN = 3\n")
    rest = yaml.safe_dump({key: SMALL[key] for key in ("models", "datasets")})
    Path("study.yaml").write_text(f"study: s\n\n{yaml.safe_dump(keys)}{rest}")
    with pytest.raises(ConfigError) as caught:
        load_config("study.yaml")
    assert told in str(caught.value)
    assert "study.yaml:" in str(caught.value)


def study_of(arguments: str, name: str = "brings") -> dict[str, object]:
    """Return a study of a plugin's design that adds entries."""
    body = f"DESIGN = Design({name!r}, ToyConfig, ('joint',), nothing, nothing, {arguments})"
    Path(f"{name}.py").write_text(BROUGHT + body + "\n")
    return COMMON | {"plugins": [f"{name}.py"], "design": name}


def test_a_design_brings_measures_and_versions() -> None:
    card = DATASETS["DailyDialog"].tasks["topic_classification"]
    answers = [(card.labels[0],), (card.labels[1],)]
    values = [0.0, 0.0]
    with pytest.raises(ConfigError, match=r"no measure 'half'. Choose one of .* spearman"):
        compute_measures(card, ["half"], answers, answers, values)
    study = study_of(
        "measures={'half': Measure('half', of_rows=half)}, versions={('measure', 'half'): 3}"
    )
    validate_config(Document(study, "study.yaml"))
    assert compute_measures(card, ["half"], answers, answers, values) == {"half": 0.25}
    assert VERSIONS["measure", "half"] == 3
    validate_config(Document(study, "study.yaml"))  # again, in the same process
    data = build_data_node("DailyDialog", "revision")
    fit = Fit("logistic_texts", data, (card.name,))
    told = [Evaluation(fit, data, card.name, (name,)).identity for name in ("half", "micro_f1")]
    assert [identity.get("versions") for identity in told] == [{"half": 3}, None]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            "measures={'accuracy': Measure('accuracy', of_rows=half)}",
            "measures: 'accuracy' is the name of a measure of the package. Choose another",
        ),
        (
            "learners={'probes': half}",
            "learners: 'probes' is the name of a learner of the package. Choose another",
        ),
        (
            "recipes={'prepend_labels': half}",
            "recipes: 'prepend_labels' is the name of a recipe of the package. Choose another",
        ),
        (
            "recipes={'prepend': half}",
            "recipes: 'prepend' is the name of a recipe of design 'empathetic'. Choose another",
        ),
        (
            "measures={'half': Measure('hlaf', of_rows=half)}",
            "measures: 'half' has the name 'hlaf'",
        ),
        ("measures={'half': Measure('half')}", "measures: 'half' has no of_rows"),
        ("versions={('recipe', 'mine'): 2}", "versions: ('recipe', 'mine') is not an entry of"),
        (
            "recipes={'mine': half}, versions={('recipe', 'mine'): 0}",
            "versions: ('recipe', 'mine') has version 0. Use 1, 2 and so on",
        ),
    ],
)
def test_what_a_design_cannot_bring(arguments: str, told: str) -> None:
    found = refusal(study_of(arguments, "brings_odd"))
    assert "plugins[0]: The design 'brings_odd' has invalid entries" in found
    assert told in found
    assert "brings_odd" not in designs.DESIGNS


def test_the_designs_of_the_package_bring_names_of_their_own() -> None:
    for design in designs.DESIGNS.values():
        add_entries(design, [one for one in designs.DESIGNS.values() if one is not design])
