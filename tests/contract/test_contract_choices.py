"""A changed test score does not change any choice, since choices use dev splits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import record_edits as edits
import yaml
from cases import cases
from contract_studies import KINDS, STUDIES, run

from tasktransfer.designs import get_design, open_study
from tasktransfer.designs.transfer.choices import SELECTION
from tasktransfer.results.study import Study

pytestmark = pytest.mark.slow

CHOSEN = ("best_epoch", "best_round", "best", "epoch", "snapshot")
"""Columns that contain the selected round."""


def choices(study: Study) -> dict[str, Any]:
    """Return the choices: the best round of each training, and the rounds in tables."""
    run("collect", "--complete")
    stages = {
        stage.path: json.loads(Path(study.get_record_path(stage)).read_text())["training"][
            "selections"
        ]
        for stage in study.plan.stages
    }
    tables = {file.name: pd.read_parquet(file) for file in Path(study.tables).glob("*.parquet")}
    columns = {
        f"{name} {column}": [str(value) for value in frame[column]]
        for name, frame in tables.items()
        for column in CHOSEN
        if column in frame
    }
    return {**stages, **columns}


@cases([(design,) for design in STUDIES])
def test_other_test_scores_change_no_choice(study: Study, design: str) -> None:
    before = choices(study)
    count = sum(edits.exchange_tests(study, kind) for kind in KINDS[design] if kind != "data")
    assert count > 1
    assert choices(study) == before


@cases([("probes",)])
def test_snapshots_are_chosen_by_dev_scores(study: Study) -> None:
    """Printed tables of snapshots selected by measures are unchanged by other test BLEU."""
    names = ("table6", "table8")  # the contract's probes all belong to the first half
    before = [Path(study.figures, f"{name}.csv").read_text() for name in names]
    assert edits.exchange_tests(study, "stage") > 1
    for command in ("collect", "statistics", "figures"):
        run(command)
    assert [Path(study.figures, f"{name}.csv").read_text() for name in names] == before


@pytest.mark.parametrize("design", ["transfer"])
@pytest.mark.parametrize(("by", "same"), [("dev", True), ("test", False)])
def test_sources_are_chosen_by_what_the_config_says(study: Study, by: str, same: bool) -> None:
    """If selected by test scores, as in the paper, sources change, so the scores do differ."""
    asked = {"mode": "auto", "choose_by": by, "targets_per_dataset": 1, "sources_per_target": 2}
    config = {"study": "transfer", **STUDIES["transfer"], "multi_source": asked}
    Path("auto.yaml").write_text(yaml.safe_dump(config))
    before = _chosen()
    assert edits.exchange_tests(study, "stage") > 1
    assert (_chosen() == before) is same


def _chosen() -> Any:
    study = open_study("auto.yaml")
    choice, choose = study.get_choice(SELECTION), get_design(study.config).choose
    assert choose is not None
    choose(study, SELECTION)
    file = Path(study.get_choice_path(choice))
    chosen = [(one["target"], one["sources"]) for one in json.loads(file.read_text())]
    file.unlink()
    return chosen
