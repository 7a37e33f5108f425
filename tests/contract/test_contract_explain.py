"""`explain` traces a node and a cell back to their sources."""

from __future__ import annotations

import json

import pytest
import record_edits as edits
from cases import cases
from contract_studies import CELLS, KINDS

from tasktransfer.cli import main
from tasktransfer.core.nodes import Fit
from tasktransfer.core.runs import Run
from tasktransfer.results.study import Study


@pytest.fixture
def study(records: Study) -> Study:
    """Return a study without tables, which these tests do not read."""
    return records


@cases([(design, kind) for design, kinds in KINDS.items() for kind in kinds])
def test_a_node_is_explained(study: Study, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    *_, node = edits.nodes_of(study, what)
    words = ["explain", node.digest[:12], "--config", "study.yaml"]
    assert main([*words, "--json"]) == 0
    (facts,) = json.loads(capsys.readouterr().out)["nodes"]
    assert facts["digest"] == node.digest
    assert facts["state"] == "done"
    assert facts["record"] == study.get_record_path(node)
    assert facts["node"]["identity"] == json.loads(json.dumps(node.identity))
    assert [used["digest"] for used in facts["uses"]] == [used.digest for used in node.uses]
    assert study.get_record_path(node) in facts["commands"][-1]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert node.label in told
    assert study.get_record_path(node) in told


@cases([(design,) for design in CELLS])
def test_a_cell_is_traced_to_the_records_of_all_its_seeds(
    study: Study, design: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *CELLS[design], "--config", "study.yaml"]) == 0
    told = capsys.readouterr().out
    assert cell_records(study, design)
    for record in cell_records(study, design):
        assert record in told


def cell_records(study: Study, design: str) -> list[str]:
    """Return the records with the scores of the cell's runs."""
    cell = CELLS[design]
    named = [(run, words_of(run)) for run in study.plan.runs]
    runs = [r for r, words in named if {*words} == {*cell} and words[-1] == cell[-1]]
    assert len(runs) == len(study.config.seeds)
    scored = [run.outcome if isinstance(run.outcome, Fit) else run.stages[-1] for run in runs]
    return [study.get_record_path(node) for node in scored]


def words_of(run: Run) -> list[str]:
    """Return the words that name a run: method, model, and its attributes."""
    several = [value if isinstance(value, tuple) else (value,) for value in run.about.values()]
    return [run.method, run.model, *(word for words in several for word in words)]
