"""A run that is not there is listed with its state and its reason."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
import record_edits as edits
from cases import cases
from contract_studies import STUDIES
from listing import collect

from tasktransfer.core.nodes import Data, Fit, Node
from tasktransfer.errors import RecordError
from tasktransfer.results.state import INTERRUPTED, claim
from tasktransfer.results.study import Study

ERROR = "loss is not a number in round 3"
STATES = ("waiting", "running", "failed", "interrupted", "parent failed", "parent waiting")


@cases([(design, state) for design in STUDIES for state in STATES])
def test_a_missing_run_is_listed_with_state_and_reason(
    study: Study, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    node = scored_with_parent(study)
    parent = next(used for used in node.uses if not isinstance(used, Data))
    words: tuple[str, ...] = (what,)
    with ExitStack() as held:
        edits.remove(study, node)
        match what:
            case "running":
                held.enter_context(claim(edits.folder_of(study, node), print))
            case "failed":
                edits.fail(study, node, ERROR)
                words = (what, ERROR)
            case "interrupted":
                edits.end(study, node, f"round 1\n{INTERRUPTED}\n")
            case "parent failed":
                edits.fail(study, parent, ERROR)
                words = ("parent", parent.label, "failed", ERROR)
            case "parent waiting":
                edits.remove(study, parent)
                words = ("waiting",)
        told = collect(study, capsys)
        assert told.code == 0
        assert told.of(node.path, *words)
        told = collect(study, capsys, "--complete")
        assert told.code == RecordError.exit_code
        assert told.of(node.path, *words[1:])


def scored_with_parent(study: Study) -> Node:
    """What the last run is scored by that was made of another training or fit."""
    scored: list[Node] = []
    for run in study.plan.runs:
        outcome = [run.outcome] if isinstance(run.outcome, Fit) else [*run.stages[-1:]]
        scored += run.evaluations or outcome
    return next(
        node for node in scored[::-1] if any(not isinstance(used, Data) for used in node.uses)
    )
