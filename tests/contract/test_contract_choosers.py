"""Every selector chooses the sources of multi-source runs, from records of a finished study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from contract_studies import TINY, TINY_WORLD

from empathetic_study import make
from tasktransfer.cli import main
from tasktransfer.designs import open_study
from tasktransfer.selection.methods import SELECTORS

pytestmark = pytest.mark.slow

TASKS = ["emotion_recognition", "dialogue_act_classification", "topic_classification"]
ENCODERS = [name for name, of in SELECTORS.items() if "encoder" in of.families]
TARGETS = 2

STUDY: dict[str, Any] = {
    "study": "choosers",
    "data": TINY_WORLD,
    "datasets": {"DailyDialog": {"tasks": TASKS}},
    "models": [TINY],
    "algorithms": ["multitask"],
    "seeds": 1,
    "selectors": ENCODERS,
    "training": {"learning_rate": 2e-3, "batch_size": 16, "epochs": 1, "limit_train": 16,
                 "limit_dev": 8, "limit_test": 12},
}  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compute every single-source run and every selector's values in a folder."""
    folder = tmp_path_factory.mktemp("choosers")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("study.yaml").write_text(yaml.safe_dump(STUDY))
        make(open_study("study.yaml"))
        for command in ("collect", "statistics"):
            assert main([command, "--config", "study.yaml"]) == 0
    return folder


def write_config(by: str, sources: int = 2, **changes: Any) -> None:
    section = {
        "mode": "auto",
        "choose_by": by,
        "targets_per_dataset": TARGETS,
        "sources_per_target": sources,
    }
    Path("auto.yaml").write_text(yaml.safe_dump({**STUDY, **changes, "multi_source": section}))


def choose() -> int:
    return main(["choose", "--config", "auto.yaml"])


def chosen_sources() -> dict[str, list[str]]:
    """Read the choice (target → sources), and delete its file."""
    file = Path("results/tables/selection.json")
    chosen = {item["target"]: item["sources"] for item in json.loads(file.read_text())}
    file.unlink()
    return chosen


@pytest.mark.parametrize("by", [name for name in ENCODERS if name != "random"])
def test_a_selector_chooses_sources_by_its_values(
    by: str, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished)
    write_config("dev")
    assert choose() == 0
    by_dev = chosen_sources()
    write_config(by)
    before = len(open_study("auto.yaml").plan.nodes)
    assert choose() == 0
    assert len(open_study("auto.yaml").plan.nodes) > before
    chosen = chosen_sources()
    assert chosen.keys() == by_dev.keys()  # dev scores select the targets
    values = pd.read_parquet("results/tables/selectors.parquet").query("selector == @by")
    assert len(chosen) == TARGETS
    for target, sources in chosen.items():
        of_source = values[values["target"] == target].groupby("source")["value"].mean()
        assert of_source.notna().all() and len(of_source) == 2
        first, second = (of_source[source] for source in sources)
        assert first >= second
        assert first > second or sources == sorted(sources)  # equal values: by name


def test_tables_say_which_selector_chose(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(finished)
    write_config("tfidf")
    assert choose() == 0
    make(open_study("auto.yaml"))
    for command in ("collect", "statistics", "figures"):
        assert main([command, "--config", "auto.yaml"]) == 0
    chosen_sources()
    told = Path("results/figures/table6.md").read_text()
    assert "their sources by the selector tfidf" in told


def test_an_incomplete_selector_does_not_choose(
    finished: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(finished)
    write_config("logme")
    study = open_study("auto.yaml")
    (run,) = (run for run in study.plan.runs if run.variant == "logme")
    record = Path(study.get_record_path(run.outcome))  # type: ignore[arg-type]
    content = record.read_bytes()
    record.unlink()
    try:
        assert choose() == 6
        assert "values of the selector logme" in capsys.readouterr().err
    finally:
        record.write_bytes(content)


@pytest.mark.parametrize(
    ("by", "problem"),
    [
        ("random", "does not rank sources"),
        ("warmup_drop", "defined for the families decoder, encoder_decoder"),
    ],
)
def test_a_selector_without_values_is_refused(
    by: str,
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_config(by, selectors=[by])
    assert main(["validate", "--config", "auto.yaml"]) == 2
    assert problem in capsys.readouterr().err
