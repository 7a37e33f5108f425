"""The version of a measure, learner or recipe is in the identity of its users, and in no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from toy_study import STUDY

from tasktransfer.core.identity import VERSIONS, Entry
from tasktransfer.core.nodes import Data, Evaluation, Fit, Node, Stage
from tasktransfer.core.plan import Plan
from tasktransfer.core.runs import add_ancestors
from tasktransfer.data.recipes import RECIPES
from tasktransfer.datasets import DATASETS, get_task
from tasktransfer.designs import DESIGNS, open_study
from tasktransfer.designs.entries import list_entries
from tasktransfer.fits import JOINT_LEARNERS, LEARNERS
from tasktransfer.metrics.measures import MEASURES
from tasktransfer.selection.selector import MEASUREMENTS

DEMO = Path(__file__).parents[2] / "workflow" / "presets" / "demo.yaml"
RAISES: list[tuple[Entry, tuple[str, ...]]] = [
    (("learner", "logistic_texts"), ("toy",)),
    (("recipe", "prepend_labels"), ("toy",)),
    (("measure", "spearman"), ("toy",)),  # named by evaluations alone
    (("measure", "micro_f1"), ("toy", "demo")),  # of cards, and selects a round
    (("measure", "macro_token_f1"), ("demo",)),  # of cards
    (("measure", "score"), ("toy", "demo")),
]


@pytest.fixture(autouse=True)
def _clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    Path("toy.yaml").write_text(yaml.safe_dump(STUDY))
    Path("demo.yaml").write_text(DEMO.read_text())
    yield
    monkeypatch.undo()
    _forget_cards()


def _forget_cards() -> None:
    """Clear the digests of cards, which are computed once per process."""
    for dataset in DATASETS.values():
        vars(dataset).pop("card_digests", None)


def plan_of(study: str) -> Plan:
    _forget_cards()
    return open_study(f"{study}.yaml", need_inputs=False).plan


def uses(node: Node, entry: Entry) -> bool:
    """Return whether a node itself uses an entry."""
    registry, name = entry
    match node:
        case Data():
            return entry == ("recipe", node.recipe)
        case Fit():
            return entry == ("learner", node.learner) or _scored_by(node, node.tasks, entry)
        case Evaluation():
            named = registry == "measure" and name in node.measures
            return named or _scored_by(node, (node.task,), entry)
        case Stage():
            selects = entry == ("measure", node.selection.measure)
            return selects or _scored_by(node, node.tasks, entry)


def _scored_by(node: Fit | Evaluation | Stage, tasks: tuple[str, ...], entry: Entry) -> bool:
    cards = [get_task(node.data.name, task) for task in tasks]
    keys = {"score", *(spec.key for card in cards for spec in card.metrics)}
    return entry[0] == "measure" and entry[1] in keys


@pytest.mark.parametrize(
    ("entry", "study"), [(entry, study) for entry, studies in RAISES for study in studies]
)
def test_a_raised_version_changes_the_digests_of_its_users_alone(
    entry: Entry, study: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = plan_of(study).nodes
    monkeypatch.setitem(VERSIONS, entry, 2)
    after = plan_of(study).nodes
    users = [any(uses(each, entry) for each in add_ancestors((node,))) for node in before]
    changed = [a.digest != b.digest for a, b in zip(before, after, strict=True)]
    assert changed == users
    assert any(users)
    monkeypatch.setitem(VERSIONS, entry, 1)
    assert [node.digest for node in plan_of(study).nodes] == [node.digest for node in before]


@pytest.mark.parametrize("entry", [("measure", "kendall"), ("recipe", "permuted_answers")])
def test_a_version_of_what_a_study_does_not_use_changes_nothing(
    entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [node.digest for node in plan_of("toy").nodes]
    monkeypatch.setitem(VERSIONS, entry, 2)
    assert [node.digest for node in plan_of("toy").nodes] == before


def test_versions_are_of_entries_that_exist() -> None:
    """A misspelt entry would have no effect."""
    known = {
        *(("measure", name) for name in MEASURES),
        *(("learner", name) for name in (*LEARNERS, *JOINT_LEARNERS, *MEASUREMENTS)),
        *(("recipe", name) for name in RECIPES),
        *(entry for design in DESIGNS.values() for entry in list_entries(design)),
    }
    assert VERSIONS.keys() <= known
