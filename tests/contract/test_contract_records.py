"""Incompatible records, and damaged records."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import record_edits as edits
from cases import cases
from contract_studies import KINDS, STUDIES, WITH_ROWS
from listing import collect

from tasktransfer.errors import RecordError
from tasktransfer.results.state import RECORD
from tasktransfer.results.study import Study

REFUSED = RecordError.exit_code
WITH_FILES = [
    (design, kind)
    for design, kinds in KINDS.items()
    for kind in kinds
    if kind == "data" or (kind == "fit" and design != "transfer")
]
"""Kinds of nodes with further files beside the record; references and selectors write none."""
KINDS_OF_ALL = [(design, kind) for design, kinds in KINDS.items() for kind in kinds]


@cases([case for case in KINDS_OF_ALL if case[1] in ("stage", "evaluation")])
def test_one_record_of_another_precision_is_refused(
    study: Study, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The precision that `auto` resolves to is not part of an identity, so digests are equal."""
    *_, node = edits.computed_on_a_model(study, what)
    edits.in_precision(study, node, "bfloat16")
    for options in ((), ("--complete",)):
        told = collect(study, capsys, *options)
        assert told.code == REFUSED
        assert "precision" in told.text
        assert node.path in told.text
        assert told.text.count(RECORD) == 2


@cases(KINDS_OF_ALL)
def test_generated_beside_real_dialogues_are_refused(
    study: Study, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are detected from records, after the data were deleted."""
    shutil.rmtree(Path(study.config.results, "data", "instances"))
    *_, node = edits.nodes_of(study, what)
    edits.called_real(study, node)
    told = collect(study, capsys)
    assert told.code == REFUSED
    assert "synthetic" in told.text
    assert node.path in told.text
    assert told.text.count(RECORD) == 2


@cases([(design, thing) for design in STUDIES for thing in edits.OTHERWISE])
def test_the_record_of_another_stage_is_not_mistaken_for_this_ones(
    study: Study, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """All other properties that must be equal are part of the digest."""
    *_, stage = study.plan.stages
    other = edits.of_another(study, stage, what)
    for options, code in (((), 0), (("--complete",), REFUSED)):
        told = collect(study, capsys, *options)
        assert told.code == code
        assert told.of(stage.path, other.digest[:12])


@cases(
    [
        *((*case, "cut off") for case in KINDS_OF_ALL),
        *((design, kind, "other rows") for design, kinds in WITH_ROWS.items() for kind in kinds),
        *((*case, "other file") for case in KINDS_OF_ALL if case in WITH_FILES),
    ]
)
def test_a_damaged_record_is_named_as_damaged(
    study: Study, what: str, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    *_, node = [
        node
        for node in edits.nodes_of(study, what)
        if how != "other rows" or edits.has_rows(study, node)
    ]
    edits.DAMAGES[how](study, node)
    reason = edits.REASONS[how]
    assert reason in str(edits.problem_of(study, node))
    told = collect(study, capsys)
    assert told.code == 0
    assert told.of(node.path, "damaged", reason)
    told = collect(study, capsys, "--complete")
    assert told.code == REFUSED
    assert told.of(node.path, "damaged", reason)
