"""Dependencies of a node's digest, the order of nodes, and nodes as JSON."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from tasktransfer.core.fidelity import FIDELITIES
from tasktransfer.core.nodes import (
    SHORT,
    Data,
    Evaluation,
    Fit,
    Node,
    Outcome,
    Pool,
    Stage,
    Start,
    merge_selections,
)
from tasktransfer.core.runs import Run, add_ancestors
from tasktransfer.core.specs import LowRank, ModelSpec, Selection, Training
from tasktransfer.errors import ConfigError

A, B, C = "emotion_recognition", "dialogue_nli", "topic_classification"

DATA = Data("DailyDialog", "r1", {"few_sample": True})
MODEL = ModelSpec("m", "encoder", "w1", 128)
BASE = Stage(
    kind="multitask",
    label="ER+DNLI@DNLI",
    data=DATA,
    model=MODEL,
    train_tasks=(A, B),
    selection=Selection((B,)),
    training=Training(),
    seed=0,
)
FINE = replace(BASE, kind="finetune", label="DNLI", train_tasks=(B,), starts=(Start(BASE),))
KEPT = replace(BASE, selection=Selection((B,), keep="every"))
DERIVED = Data("DailyDialog", "r1", {"k": 1}, "prepend_labels", (Fit("fasttext", DATA, (A,)),))
FIT = Fit("probes", DATA, (A, B), on=Start(FINE))
OUTCOME = Outcome((Start(FINE), Start(BASE)), "mean")
EVALUATION = Evaluation(OUTCOME, DERIVED, A, ("accuracy",))

OTHER_TRAINING: dict[str, Any] = {
    "learning_rate": 1e-4,
    "batch_size": 61,
    "epochs": 31,
    "max_grad_norm": 2.0,
    "precision": "float32",
    "task_weighting": "none",
    "loss_on": "sequence",
    "fidelity": FIDELITIES["tlidb"],
    "dropout": 0.0,
    "limit_train": 5,
    "limit_dev": 5,
    "limit_test": 5,
    "deterministic": True,
    "optimiser": "adamax",
    "cosine_scale": 20.0,
    "weight_decay": 0.01,
    "optimiser_bits": 8,
    "updates": 600,
    "min_updates": 90,
    "schedule": "linear",
    "warmup": 0.1,
    "head_learning_rate": 1e-3,
    "decays": "matrices",
    "head_initialization": "logistic_regression",
}
OTHER_SELECTION: dict[str, Any] = {"measure": "loss", "every": 100, "patience": 3}
OTHER_MODEL: dict[str, Any] = {
    "family": "decoder",
    "weights": "w2",
    "max_length": 129,
    "beside": ModelSpec("n", "encoder", "w3", 128),
    "adapter_reduction": 16,
    "beside_reads": "pooler",
    "reads": "pair",
    "adapter": LowRank(),
}
OTHER_DATA: dict[str, Any] = {
    "name": "Friends",
    "revision": "r2",
    "settings": {"few_sample": False},
    "recipe": "shuffle",
    "cards": {A: "a1"},
}
OTHER_STAGE: dict[str, Any] = {
    "train_tasks": (A, B, C),
    "seed": 1,
    "starts": (Start(BASE),),
    "trains": ("head",),
    "sampler": "uniform",
    "tests": (),
    "recipe": 4,
}
OTHER_START: dict[str, Any] = {
    "stage": None,
    "at": "last",
    "parts": ("encoder",),
    "into": ("second_encoder",),
    "merged": "mean",
}

NAMES = {
    Stage: {"kind", "label", "also_selected"},
    ModelSpec: {"name"},
    Selection: {"tasks", "keep", "rounds"},
    Training: {"gradient_checkpointing"},
}
"""Fields for paths, people, disks, memory and what is chosen afterwards, which no digest depends
on."""
OF_THEIR_OWN = {Stage: {"data", "model", "selection", "training"}, Data: {"uses"}}
"""Fields that are dataclasses or nodes, whose own fields are tried one by one."""


def changed_stages() -> dict[str, Stage]:
    """Yield the stage with one value changed, in ``BASE`` or in a start of ``FINE``."""

    def each(part: str, values: dict[str, Any]) -> dict[str, Stage]:
        whole = getattr(BASE, part)
        return {
            f"{part}.{key}": replace(BASE, **{part: replace(whole, **{key: value})})
            for key, value in values.items()
        }

    start = Start(replace(KEPT, seed=7))
    return {
        **{key: replace(BASE, **{key: value}) for key, value in OTHER_STAGE.items()},
        **each("data", OTHER_DATA),
        **each("model", OTHER_MODEL),
        **each("selection", OTHER_SELECTION),
        **each("training", OTHER_TRAINING),
        "data.uses": replace(BASE, data=DERIVED),
        "the start": FINE,
        "another start": replace(FINE, starts=(start,)),
        **{
            f"start.{key}": replace(FINE, starts=(replace(start, **{key: value}),))
            for key, value in OTHER_START.items()
        },
        "two starts": replace(FINE, starts=(start, start)),
    }


OTHERS: dict[str, tuple[Node | Outcome, dict[str, Any]]] = {
    "fit": (
        FIT,
        {
            "learner": "fasttext",
            "reads": (BASE,),
            "data": DERIVED,
            "tasks": (A,),
            "seed": 1,
            "settings": {"C": 1.0},
            "on": None,
        },
    ),
    "outcome": (
        OUTCOME,
        {"starts": OUTCOME.starts[:1], "combine": "route", "domains": ("a", "b"), "model": MODEL},
    ),
    "evaluation": (
        EVALUATION,
        {
            "of": FIT,
            "data": DATA,
            "task": B,
            "measures": ("f1",),
            "split": "dev",
            "settings": {"beam": 4},
            "pools": (Pool(DATA, A),),
        },
    ),
    "derived data": (
        DERIVED,
        {
            "name": "Friends",
            "revision": "r2",
            "settings": {"k": 2},
            "recipe": "shuffle",
            "uses": (),
        },
    ),
}


def test_every_change_gives_another_digest() -> None:
    digests = {name: stage.digest for name, stage in changed_stages().items()}
    assert BASE.digest not in digests.values()
    assert len(set(digests.values())) == len(digests)
    for name, (node, values) in OTHERS.items():
        changed = {node.digest, *(replace(node, **{k: v}).digest for k, v in values.items())}
        assert len(changed) == 1 + len(values), name


OF_READERS = {"derived data": {"cards"}}
"""Fields that are in the identity of what reads the node."""
CARDS = {A: "a1", B: "b1", C: "c1"}


def test_a_node_has_the_cards_of_the_tasks_that_it_reads() -> None:
    data = replace(DATA, cards=CARDS)
    named = replace(DERIVED, cards=CARDS, settings={"k": 1, "tasks": [{"of": C}], "how": "best"})
    pools = (Pool(replace(DATA, cards={"other": "o1"}), "other"),)
    tested = replace(BASE, data=data, train_tasks=(A,), selection=Selection((B,)), tests=(C,))
    assert tested.identity["cards"] == CARDS
    assert Fit("logistic", data, (B, "stray")).identity["cards"] == {B: "b1"}
    judged = replace(EVALUATION, data=named, pools=pools)
    assert judged.identity["cards"] == {A: "a1", "other": "o1"}
    assert named.identity["derived"]["cards"] == {C: "c1"}
    assert "cards" not in replace(DERIVED, cards=CARDS).identity["derived"]


def test_cards_are_part_of_digests() -> None:
    data = replace(DATA, cards=CARDS)
    for node in (BASE, FIT, EVALUATION):
        assert replace(node, data=data).digest != node.digest


def test_what_selects_the_round_is_part_of_what_starts_from_it_alone() -> None:
    other = replace(BASE, selection=Selection((A,)))
    both = replace(BASE, selection=Selection((A, B)))
    assert BASE.digest == other.digest == both.digest
    assert [Start(one).selected_on for one in (BASE, other, both)] == [(B,), (A,), ()]
    assert "selected_on" not in Start(both).identity, "it is chosen by its training tasks"
    begun = [replace(FINE, starts=(Start(one),)).digest for one in (BASE, other, both)]
    assert len({*begun}) == 3
    read = [replace(DERIVED, uses=(one,)).digest for one in (BASE, other, both)]
    assert len({*read}) == 3


def test_a_stage_with_several_selections() -> None:
    other = replace(BASE, selection=Selection((A,), keep="every", rounds=(0, 2)))
    every = merge_selections(BASE, [other, replace(BASE, selection=Selection((A, B)))])
    assert every.digest == BASE.digest
    assert [one.tasks for one in every.selections] == [(B,), (A,), (A, B)]
    assert (every.measured_on, every.tested) == ((B, A), (B, A))
    assert [number for number in range(4) if every.keeps_round(number)] == [0, 2]
    assert merge_selections(every, [BASE]) is every
    with pytest.raises(ConfigError, match="the round to test on"):
        merge_selections(replace(BASE, tests=(A,)), [other])


def test_which_rounds_are_kept_is_not_part_of_an_identity() -> None:
    some = replace(KEPT, selection=replace(KEPT.selection, rounds=(0, 4)))
    assert BASE.digest == KEPT.digest == some.digest


def test_every_field_is_tried_above() -> None:
    tried: dict[type[Any], set[str]] = {
        Stage: set(OTHER_STAGE),
        Data: set(OTHER_DATA),
        ModelSpec: set(OTHER_MODEL),
        Selection: set(OTHER_SELECTION),
        Training: set(OTHER_TRAINING),
        Start: set(OTHER_START),
    }
    for kind, names in tried.items():
        apart = NAMES.get(kind, set()) | OF_THEIR_OWN.get(kind, set())
        assert {field.name for field in fields(kind)} == names | apart
    for name, (node, values) in OTHERS.items():
        assert {field.name for field in fields(node)} == set(values) | OF_READERS.get(name, set())


def test_digests_are_pinned() -> None:
    """Results on disk are found by them.

    They may change only together with RECIPE_VERSION and LIBRARY_VERSION.
    """
    pinned = {
        "stage": (BASE, "a1783b7cb480"),
        "finetune": (FINE, "b4f3d41535cb"),
        "data": (DERIVED, "f5bf2057fbe0"),
        "fit": (FIT, "ec6349ce3805"),
        "evaluation": (EVALUATION, "45dd4edd4319"),
    }
    for name, (node, digest) in pinned.items():
        assert node.digest[:SHORT] == digest, name


def test_names_change_no_digest() -> None:
    renamed = replace(BASE, kind="other", label="X", model=replace(MODEL, name="other"))
    assert renamed.digest == BASE.digest
    assert renamed.path != BASE.path


def test_what_a_field_means_at_its_default_may_be_written_out() -> None:
    """The base model as the only start equals no start."""
    assert replace(BASE, starts=(Start(None),)).digest == BASE.digest


def test_what_is_tested_is_what_selects_unless_it_is_said() -> None:
    assert BASE.tested == (B,)
    assert replace(BASE, selection=Selection((A, B))).tested == ()
    assert replace(BASE, tests=(A, C)).tested == (A, C)
    assert replace(BASE, tests=(C,)).tasks == (B, A, C)


def test_paths_end_in_the_digest() -> None:
    short = BASE.digest[:SHORT]
    assert BASE.path == f"stages/multitask/DailyDialog/m/ER+DNLI@DNLI/seed0-{short}"
    for node in (DERIVED, FIT, EVALUATION):
        assert node.path.endswith(node.digest[:SHORT])
    many = replace(FIT, tasks=tuple(f"task{number}" for number in range(190)))
    assert "task0+task1+task2+task3+186more_on_DNLI@best" in many.path


def test_what_a_node_uses_comes_before_it_and_once() -> None:
    assert add_ancestors((FINE, FINE)) == (BASE, FINE)
    (labels,) = DERIVED.uses
    assert add_ancestors((EVALUATION,)) == (labels, DERIVED, BASE, FINE, EVALUATION)
    assert add_ancestors((FIT,)) == (BASE, FINE, FIT)
    assert FINE.parents == (BASE,)
    assert replace(FINE, starts=(Start(KEPT), Start(KEPT, "last"))).parents == (KEPT,)
    assert BASE.uses == ()
    assert replace(BASE, data=DERIVED).uses == (DERIVED,)


def test_the_stages_of_a_run_are_those_of_its_outcome_in_order() -> None:
    last = replace(FINE, seed=1, starts=(Start(FINE),))
    run = Run("method", "m", 0, {}, Outcome((Start(last),)))
    assert run.stages == (BASE, FINE, last)
    assert run.stages[-1] is last
    assert Run("probe", "m", 0, {}, FIT).stages == (BASE, FINE)
