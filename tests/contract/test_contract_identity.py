"""A task's card is part of the identity of the nodes that read the task, and of no others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from contract_studies import STUDIES

from tasktransfer.core.nodes import Data, Evaluation, Fit, Node, Stage
from tasktransfer.core.runs import list_starts
from tasktransfer.datasets import DATASETS
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import Task


@pytest.fixture
def study(records: Study) -> Study:
    """Return a study without tables, which these tests do not read."""
    return records


@pytest.mark.parametrize("design", list(STUDIES))
def test_an_edited_card_changes_what_reads_the_task_and_nothing_else(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = study.plan.nodes
    for task in sorted({task for node in before for task in asked(node)}):
        with monkeypatch.context() as patch:
            edit(patch, before, task, lambda card: replace(card, query=f"{card.query} as asked"))
            after = study.planner(study.config, study.revisions).nodes
        for old, new in zip(before, after, strict=True):
            assert (old.digest != new.digest) is reads(old, task), f"{task}: {old.label}"


@pytest.mark.parametrize("design", list(STUDIES))
def test_what_is_said_about_a_task_is_in_no_identity(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = study.plan.nodes
    for task in sorted({task for node in before for task in asked(node)}):
        edit(monkeypatch, before, task, lambda card: replace(card, description="D", citation="C"))
    after = study.planner(study.config, study.revisions).nodes
    assert [node.digest for node in after] == [node.digest for node in before]


def edit(
    patch: pytest.MonkeyPatch, nodes: tuple[Node, ...], task: str, change: Callable[[Task], Task]
) -> None:
    """Change the card of a task in this process."""
    names = {node.name if isinstance(node, Data) else node.data.name for node in nodes}
    (dataset,) = (DATASETS[name] for name in names if task in DATASETS[name].tasks)
    cards = tuple(change(card) if card.name == task else card for card in dataset.cards)
    patch.setitem(DATASETS, dataset.name, replace(dataset, cards=cards))


def asked(node: Node) -> set[str]:
    """Return the tasks that a node itself reads, except those in the settings of derived data."""
    match node:
        case Stage():
            return {*node.tasks}
        case Fit():
            return {*node.tasks}
        case Evaluation():
            return {node.task, *(pool.task for pool in node.pools)}
    return set()


def reads(node: Node, task: str) -> bool:
    """Return whether a node or one of its ancestors reads a task."""
    named = isinstance(node, Data) and task in str(node.settings).replace("'", " ").split()
    before = [*node.uses, *(start.stage for start in list_starts(node) if start.stage)]
    if isinstance(node, Evaluation) and isinstance(node.of, Fit):
        before.append(node.of)
    return named or task in asked(node) or any(reads(used, task) for used in before)
