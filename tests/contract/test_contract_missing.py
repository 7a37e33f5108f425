"""A missing run is listed with its state and its reason."""

from __future__ import annotations

from contextlib import ExitStack
from html import escape
from pathlib import Path

import pytest
import record_edits as edits
from cases import cases
from contract_studies import KINDS, STUDIES
from listing import collect

from tasktransfer.cli import main
from tasktransfer.core.nodes import Data, Fit, Node
from tasktransfer.designs import get_design
from tasktransfer.designs.commands import read_frames
from tasktransfer.errors import RecordError
from tasktransfer.operate.status import ProgressWatcher
from tasktransfer.present.page.page import NOTHING_MISSING
from tasktransfer.results.records import PLURALS
from tasktransfer.results.state import INTERRUPTED, RECORD, claim_folder
from tasktransfer.results.study import Study

pytestmark = pytest.mark.slow

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
                held.enter_context(claim_folder(edits.folder_of(study, node), print))
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


@cases([(design, kind) for design in STUDIES for kind in KINDS[design]])
def test_every_missing_node_is_counted_by_kind_and_told_by_the_page(
    study: Study, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """This includes nodes that no run ends with, and nodes whose dependents all exist."""
    nodes = edits.nodes_of(study, what)
    removed = {node.digest: node for node in (nodes[0], nodes[-1])}
    for node in removed.values():
        Path(study.get_record_path(node)).unlink()
    told = collect(study, capsys)
    assert told.code == 0
    counted = f"{len(removed)} of {len(nodes)} {PLURALS[what]}"
    assert told.of("without a record", counted)
    for node in removed.values():
        assert told.of(node.path), node.label
    for command in ("statistics", "report"):
        assert main([command, "--config", study.config_file]) == 0
    page = Path(study.report).read_text()
    sentence = f"No record exists for {counted}."
    assert page.count(sentence) == 2, "above everything, and in its section"
    assert NOTHING_MISSING not in page
    assert f"<dt>Missing</dt><dd>{counted}</dd>" in page


@cases([(design,) for design in STUDIES])
def test_the_page_lists_what_status_counts(
    study: Study, design: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One record of each kind is missing; the job of the first one has failed."""
    removed = [edits.nodes_of(study, kind)[0] for kind in KINDS[design]]
    for node in removed:
        edits.remove(study, node)
    edits.fail(study, removed[0], ERROR)
    seen = ProgressWatcher(study).get_progress()
    assert seen["left"] - seen["again"] == len(removed), "others lack only their parameters"
    assert [item["digest"] for item in seen["failed"]] == [removed[0].digest]
    assert collect(study, capsys).code == 0
    for command in ("statistics", "report"):
        assert main([command, "--config", study.config_file]) == 0
    missing = read_frames(study, get_design(study.config).analysis(study))["missing"]
    paths = {path.removesuffix(f"/{RECORD}") for path in missing["path"]}
    assert paths | {*missing["node"]} == {node.path for node in removed}
    assert {*missing.loc[missing["node"] == removed[0].path, "state"]} == {"failed"}
    page = Path(study.report).read_text()
    for state, rows in missing.groupby("state"):
        table = page.partition(f'id="missing-{state}"')[2].partition("</table>")[0]
        assert table.count("<tr>") == len(rows) + 1, "and the head"
        assert all(escape(str(node)) in table for node in rows["node"])


@cases([(design,) for design in STUDIES])
def test_nothing_is_missing_only_where_every_node_has_a_record(
    study: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not collect(study, capsys).of("without a record")
    for command in ("statistics", "report"):
        assert main([command, "--config", study.config_file]) == 0
    page = Path(study.report).read_text()
    assert NOTHING_MISSING in page and "No record exists" not in page


def scored_with_parent(study: Study) -> Node:
    """Return the node that scores the last run whose result depends on a training or fit."""
    scored: list[Node] = []
    for run in study.plan.runs:
        outcome = [run.outcome] if isinstance(run.outcome, Fit) else [*run.stages[-1:]]
        scored += run.evaluations or outcome
    return next(
        node for node in scored[::-1] if any(not isinstance(used, Data) for used in node.uses)
    )
