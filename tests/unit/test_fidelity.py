"""The fidelity switches: each changes what it states, and nothing at its default."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from small_splits import get_split
from small_study import SMALL, changed, parse

from small_models import Loader, small_stage, train_quietly
from tasktransfer.config.from_core import DESCRIPTIONS
from tasktransfer.core.fidelity import DEFAULT, FIDELITIES, Fidelity, get_scoring
from tasktransfer.core.nodes import Start
from tasktransfer.core.specs import FAMILIES, Family, Training
from tasktransfer.datasets import get_task
from tasktransfer.errors import ConfigError, DataError
from tasktransfer.models.encoder import Encoder
from tasktransfer.models.heads import create_head, select_labels
from tasktransfer.training.samplers import Schedule, build_task_batches

TLIDB = FIDELITIES["tlidb"]
# Of the released code of FLAD, which the toolkit has nothing of.
OTHER: dict[str, Any] = {each.name: getattr(TLIDB, each.name) for each in fields(Fidelity)}
OTHER["exp3_steps"] = "released"


# --- identity and config ------------------------------------------------------------------------


def training(**switches: Any) -> Training:
    return Training(fidelity=replace(DEFAULT, **switches))


def test_the_default_is_named_in_an_identity_as_it_always_was() -> None:
    assert Training().identity["fidelity"] == "default"
    assert DEFAULT.encoding_switches == {}


def test_what_tlidb_meant_before_keeps_its_name_in_an_identity() -> None:
    assert training(scoring="tlidb", multi_label="softmax").identity["fidelity"] == "tlidb"


def test_every_switch_has_another_value_in_tlidb_and_gives_a_digest_of_its_own() -> None:
    assert all(OTHER[each.name] != each.default for each in fields(Fidelity))
    stages = [small_stage("dialogue_nli", training=training(**{k: v})) for k, v in OTHER.items()]
    whole = small_stage("dialogue_nli", training=Training(fidelity=TLIDB))
    digests = {stage.digest for stage in (*stages, whole, small_stage("dialogue_nli"))}
    assert len(digests) == len(OTHER) + 2


@pytest.mark.parametrize(
    ("identity", "scoring"),
    [("default", "default"), ("tlidb", "tlidb"), (TLIDB.identity, "tlidb"),
     ({"backbone_dropout": False}, "default"), (None, "default")],
)  # fmt: skip
def test_how_a_record_was_scored_is_read_off_old_and_new_identities(
    identity: Any, scoring: str
) -> None:
    assert get_scoring(identity) == scoring


def test_every_switch_has_a_description_for_the_config() -> None:
    assert list(DESCRIPTIONS) == [each.name for each in fields(Fidelity)]


def configured(value: Any) -> Training:
    return parse(changed("training", "fidelity", to=value)).get_training_hyperparameters("Friends")


@pytest.mark.parametrize("setting", FIDELITIES)
def test_a_setting_sets_all_switches(setting: str) -> None:
    assert configured(setting).fidelity == FIDELITIES[setting]  # type: ignore[index]
    assert configured({"setting": setting}).fidelity == FIDELITIES[setting]  # type: ignore[index]


def test_single_switches_differ_from_a_setting() -> None:
    made = configured({"setting": "tlidb", "backbone_dropout": True}).fidelity
    assert made == replace(TLIDB, backbone_dropout=True)
    assert configured({"repetition_penalty": 2}).fidelity == Fidelity(repetition_penalty=2.0)


def test_a_setting_says_what_auto_means() -> None:
    said = {
        name: (configured(name).task_weighting, configured(name).loss_on) for name in FIDELITIES
    }
    assert said == {
        "default": ("inverse_sqrt", "answer"),
        "paper": ("none", "answer"),
        "tlidb": ("inverse_sqrt", "sequence"),
    }
    own = {**SMALL.get("training", {}), "fidelity": "tlidb", "loss_on": "answer"}
    assert (
        parse({**SMALL, "training": own}).get_training_hyperparameters("Friends").loss_on
        == "answer"
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("tlidp", "Did you mean 'tlidb'"),
        ({"setting": "papr"}, "training.fidelity.setting.*Did you mean 'paper'"),
        ({"backbone_drop": False}, "Did you mean 'backbone_dropout'"),
        ({"batches_per_update": 2}, "batches_per_update: The value is 2, but it must be 1 or 3"),
    ],
)
def test_slips_name_the_key_and_the_nearest_name(value: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        configured(value)


# --- updates ------------------------------------------------------------------------------------

THREES = training(batches_per_update=3)
CARRIED = training(batches_per_update=3, leftover_batches="next_epoch")


def test_an_update_is_three_batches_of_a_third_of_the_size() -> None:
    sizes = {"a": 130, "b": 35}  # 7 and 2 batches of 20
    updates = build_task_batches(sizes, THREES, seed=0, epoch=1)
    assert [len(update) for update in updates] == [3, 3, 3]
    assert max(len(batch.examples) for update in updates for batch in update) == 20
    assert any(len({batch.task for batch in update}) == 2 for update in updates)
    weights = {batch.task: batch.weight for update in updates for batch in update}
    assert weights == pytest.approx({"a": 1 / 7**0.5 / 3, "b": 1 / 2**0.5 / 3})


def test_too_few_batches_for_an_update_are_one_of_their_own() -> None:
    *_, last = build_task_batches({"a": 75}, THREES, seed=0, epoch=1)  # 4 batches
    assert [batch.weight for batch in last] == [1.0]


def test_leftover_batches_join_the_next_epochs_first_update() -> None:
    sizes = {"a": 95}  # 5 batches: 3 for an update, 2 left over
    both = [build_task_batches(sizes, CARRIED, seed=0, epoch=epoch) for epoch in (1, 2)]
    apart = [build_task_batches(sizes, THREES, seed=0, epoch=epoch) for epoch in (1, 2)]
    assert [[len(update) for update in epoch] for epoch in both] == [[3], [5]]
    assert both[0] == apart[0][:1]
    left, first = [b.examples for b in apart[0][1]], [b.examples for b in apart[1][0]]
    assert [batch.examples for batch in both[1][0]] == [*left, *first]
    assert {batch.weight for batch in both[1][0]} == {1 / 3}


@pytest.mark.parametrize("given", [Training(), THREES, CARRIED])
def test_a_schedule_counts_the_updates_that_exist(given: Training) -> None:
    stage = small_stage("a", training=replace(given, epochs=3))
    schedule = Schedule.build(stage, {"a": get_split([3] * 95)})
    assert schedule.rounds == 3
    made = [list(schedule.iterate_round(number)) for number in (1, 2, 3)]
    sizes = {"a": 95}
    assert made == [build_task_batches(sizes, given, seed=0, epoch=epoch) for epoch in (1, 2, 3)]


def test_a_task_that_the_toolkit_never_updates_on_is_refused() -> None:
    with pytest.raises(DataError, match="2 batches, but an update needs 3"):
        Schedule.build(small_stage("a", training=CARRIED), {"a": get_split([3] * 40)})


@pytest.mark.parametrize(("stays", "weight"), [(False, 1.0), (True, 0.5)])
def test_a_task_is_weighted_when_it_is_fine_tuned_after_several(stays: bool, weight: float) -> None:
    given = training(weighting_when_finetuning=stays)
    several = small_stage("a", "b", training=given)
    between = small_stage("a", training=given, starts=(Start(several),))
    alone = small_stage("a", training=given)
    for before, expected in ((several, weight), (between, weight), (alone, 1.0)):
        stage = small_stage("a", training=given, starts=(Start(before),))
        schedule = Schedule.build(stage, {"a": get_split([3] * 200)})  # 4 batches of 60
        assert {batch.weight for (batch,) in schedule.iterate_round(1)} == {expected}


# --- models -------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("active", [True, False])
def test_dropout_of_the_backbone_is_active_or_not(
    family: Family, active: bool, load: Loader
) -> None:
    given = replace(training(backbone_dropout=active), dropout=0.5)
    model, split = load(family, "DailyDialog", "dialogue_nli", training=given)
    if isinstance(model, Encoder):
        model.dropout.p = 0.0
    model.enter_training_mode()
    losses = {float(model.compute_loss(split, [0, 1]).detach()) for _ in range(3)}
    assert (len(losses) > 1) == active


def test_the_dropout_before_a_head_stays_on(load: Loader) -> None:
    given = replace(training(backbone_dropout=False), dropout=0.5)
    model, _ = load("encoder", "DailyDialog", "dialogue_nli", training=given)
    assert isinstance(model, Encoder)
    model.enter_training_mode()
    assert model.dropout.training
    assert not any(module.training for module in model.backbone.modules())


def test_heads_start_as_torch_and_xavier_have_it() -> None:
    task = get_task("DailyDialog", "dialogue_act_classification")
    normal, xavier = (create_head(64, task, 1, start) for start in ("normal", "xavier"))
    bound = (6 / (64 + task.classes)) ** 0.5
    assert xavier.weight.abs().max() <= bound
    assert xavier.weight.abs().max() > 0.9 * bound
    assert 0 < xavier.bias.abs().max() <= 1 / 8
    assert normal.weight.std() < 0.03
    assert torch.equal(normal.bias, torch.zeros(task.classes))
    assert torch.equal(xavier.weight, create_head(64, task, 1, "xavier").weight)


def test_labels_are_chosen_by_sigmoid_or_softmax() -> None:
    task = get_task("Friends", "relation_extraction")
    logits = torch.full((task.classes,), -9.0)
    logits[3], logits[5] = -1.0, -2.0
    assert select_labels(task, logits, "sigmoid") == (task.labels[3],)
    assert select_labels(task, logits, "softmax") == (task.labels[3], task.labels[5])


@pytest.mark.parametrize("family", ["decoder", "encoder_decoder"])
def test_the_repetition_penalty_changes_what_is_generated(family: Family, load: Loader) -> None:
    made = []
    for penalty in (1.0, 5.0):
        given = training(repetition_penalty=penalty)
        task = "dialogue_reasoning_span_extraction"
        model, split = load(family, "DailyDialog", task, training=replace(given, dropout=0.0))
        model.module.eval()
        made.append(model.predict(split, range(len(split))))
    assert made[0] != made[1]


# --- selection ----------------------------------------------------------------------------------


def test_rounds_are_chosen_by_all_metrics_of_the_release(load: Loader) -> None:
    task = get_task("DailyDialog", "causal_emotion_span_extraction")
    chosen = {}
    for which in ("table_1", "release"):
        model, split = load("encoder", "DailyDialog", task.name)
        given = replace(training(selection_metrics=which), epochs=1)
        history = train_quietly(model, small_stage(task.name, training=given), {task.name: split})
        chosen[which] = history.rounds[0].dev, history.best[0].scores[0]
    metrics = chosen["release"][0][task.name]
    assert len(metrics) == 3
    assert chosen["release"][1] == pytest.approx(sum(metrics.values()) / 3)
    two = [metrics[key] for key in task.paper_metrics]
    assert chosen["table_1"][1] == pytest.approx(sum(two) / 2)


def test_edges_are_chosen_among_all_tokens(load: Loader) -> None:
    name = "dialogue_reasoning_span_extraction"
    given = replace(training(span_choice="edges"), dropout=0.0)
    ours, split = load("encoder", "DailyDialog", name)
    theirs, _ = load("encoder", "DailyDialog", name, training=given)
    losses = [model.compute_loss(split, range(len(split))).detach() for model in (ours, theirs)]
    assert losses[1] > losses[0]  # more tokens to choose from
    groups = theirs.split_for_training(split, range(len(split)), 1)
    assert groups == [list(range(len(split)))]
    read = theirs.split_for_prediction(split, range(45), 1)
    assert read == [list(range(20)), list(range(20, 40)), list(range(40, 45))]


def test_padding_is_never_penalised(load: Loader) -> None:
    given = training(repetition_penalty=5.0)
    model, split = load("decoder", "DailyDialog", "dialogue_nli", training=given)
    groups = model.split_for_prediction(split, range(len(split)), 10_000)
    lengths = [{len(split.sequences[example]) for example in group} for group in groups]
    assert all(len(one) == 1 for one in lengths)
    assert sorted(example for group in groups for example in group) == [*range(len(split))]
