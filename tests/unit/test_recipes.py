"""``training.recipe: auto`` and the other keys of a budget: resolved values of a config."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_study import SMALL, changed, parse

from tasktransfer.config.training import find_recipe
from tasktransfer.core.nodes import Stage
from tasktransfer.core.specs import ModelSpec
from tasktransfer.designs.transfer import plan as planning
from tasktransfer.errors import ConfigError, ModelError
from tasktransfer.results import revisions as inputs
from tasktransfer.results.revisions import Revisions

MODEL = {"name": "m", "family": "encoder", "checkpoint": "tiny", "max_length": 64}


def plan_stages(
    training: Mapping[str, Any], model: Mapping[str, Any] = MODEL, controls: Sequence[str] = ()
) -> dict[str, Stage]:
    """Return the stages of a small study by their label."""
    keys = {"seeds": 1, "models": [dict(model)], "training": dict(training)}
    config = parse({**SMALL, **keys, "controls": [*controls]})
    adapter = config.models[0].adapter
    spec = ModelSpec("m", config.models[0].family, "w", 64)
    spec = replace(spec, adapter=adapter.spec if adapter else None)
    revisions = Revisions({d.name: "r" for d in config.datasets}, {"m": spec}, {"m": 22_000_000})
    return {stage.label: stage for stage in planning.build_plan(config, revisions).stages}


def test_auto_fills_in_what_the_file_leaves_out() -> None:
    recipe = find_recipe("encoder", 22_000_000, adapted=False)
    for stage in plan_stages({"recipe": "auto"}).values():
        assert stage.training.learning_rate == recipe.learning_rate
        length = (stage.training.epochs, stage.training.min_updates, stage.training.updates)
        assert length == (recipe.epochs, recipe.min_updates, None)
        assert stage.training.decays == "matrices"
        assert stage.selection.every == recipe.round_updates
        assert stage.model.reads == recipe.reads == "turn"
        assert stage.training.head_initialization == "auto"
    own = {"recipe": "auto", "learning_rate": 7e-5, "schedule": "constant", "updates": None}
    own["head_initialization"] = "random"
    for stage in plan_stages(own, {**MODEL, "reads": "first_token"}).values():
        assert stage.training.learning_rate == 7e-5
        assert stage.training.schedule == "constant"
        assert (stage.training.epochs, stage.training.min_updates) == (3, 300)
        assert stage.model.reads == "first_token"
        assert stage.training.head_initialization == "random"


@pytest.mark.parametrize("budget", [{"epochs": 3}, {"updates": 40}, {"min_updates": 90}])
def test_a_budget_of_the_file_replaces_the_recipes(budget: dict[str, int]) -> None:
    (stage, *_) = plan_stages({"recipe": "auto", **budget}).values()
    assert stage.training.updates == budget.get("updates")
    assert stage.training.min_updates == budget.get("min_updates")
    recipe = find_recipe("encoder", 22_000_000, adapted=False)
    if "updates" not in budget:
        assert stage.training.epochs == budget.get("epochs", recipe.epochs)
    assert stage.selection.every == (None if "epochs" in budget else recipe.round_updates)


def test_a_recipe_trains_on_few_instances_for_its_updates_and_on_many_for_its_epochs() -> None:
    (stage, *_) = plan_stages({"recipe": "auto"}, controls=["longer_baseline"]).values()
    for instances, updates in ((50, 300), (500, 300), (1600, 300), (5000, 3 * 313)):
        in_epoch = math.ceil(instances / stage.training.batch_size)
        assert stage.training.count_updates("task_batches", 1, in_epoch) == updates
        longer = stage.training.multiply_budget(2)
        assert longer.count_updates("task_batches", 1, in_epoch) == 2 * updates
    assert longer.budget == "6_epochs_600_updates"


def test_recipes_differ_by_family_and_size() -> None:
    small, base = (find_recipe("encoder", n, adapted=False) for n in (22_000_000, 109_000_000))
    assert small.learning_rate > base.learning_rate
    decoder = find_recipe("decoder", 135_000_000, adapted=False)
    assert (decoder.reads, decoder.head_initialization) == ("pooler", "random")
    for family in ("encoder", "decoder", "encoder_decoder"):
        for adapted in (False, True):
            assert find_recipe(family, 10**12, adapted=adapted).min_updates  # type: ignore[arg-type]
    lora = {**MODEL, "checkpoint": "./m", "adapter": {"rank": 4}}
    recipe = find_recipe("encoder", 22_000_000, adapted=True)
    (stage, *_) = plan_stages({"recipe": "auto"}, lora).values()
    assert stage.training.learning_rate == pytest.approx(10 * recipe.learning_rate)


def test_rounds_and_patience_reach_every_stage_and_every_digest() -> None:
    plain = plan_stages({})
    early = plan_stages({"patience": 3, "round_updates": 20})
    for label, stage in early.items():
        assert (stage.selection.every, stage.selection.patience) == (20, 3)
        assert stage.digest != plain[label].digest


def test_only_encoders_have_fitted_heads() -> None:
    models = [MODEL, {**MODEL, "name": "gpt", "family": "decoder"}]
    config = parse({**SMALL, "models": models, "training": {"head_initialization": "auto"}})
    specs = {each.name: ModelSpec(each.name, each.family, "w", 64) for each in config.models}
    revisions = Revisions({d.name: "r" for d in config.datasets}, specs)
    stages = planning.build_plan(config, revisions).stages
    found = {stage.model.family: stage.training.head_initialization for stage in stages}
    assert found == {"encoder": "auto", "decoder": "random"}


def test_a_longer_baseline_has_twice_the_updates() -> None:
    stages = plan_stages({"updates": 50}, controls=["longer_baseline"])
    longer = {
        name: s.training.updates for name, s in stages.items() if name.endswith("_100_updates")
    }
    assert {*longer.values()} == {100}


@pytest.mark.parametrize(
    ("training", "path"),
    [
        ({"updates": 9, "epochs": 3}, "training.epochs"),
        ({"updates": 9, "min_updates": 3}, "training.min_updates"),
        ({"recipe": "auto", "fidelity": "tlidb"}, "training.recipe"),
        ({"recipe": "auto", "fidelity": {"setting": "paper"}}, "training.recipe"),
        ({"recipe": "best"}, "training.recipe"),
        ({"warmup": 1}, "training.warmup"),
        ({"schedule": "step"}, "training.schedule"),
    ],
)
def test_what_cannot_be_is_refused(training: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigError, match=path):
        parse({**SMALL, "training": training})


def test_the_inputs_of_the_toolkit_do_not_mark_the_labelled_turn() -> None:
    document = changed("models", 0, to={**MODEL, "reads": "turn"})
    parse(document)
    with pytest.raises(ConfigError, match=r"models\[0\].reads.*toolkit"):
        parse({**document, "training": {"fidelity": {"inputs": "tlidb"}}})
    for stage in plan_stages({"recipe": "auto", "fidelity": {"inputs": "tlidb"}}).values():
        assert stage.model.reads == "mean"


def test_only_encoders_have_heads() -> None:
    decoder = changed("models", 0, to={**MODEL, "family": "decoder"})
    with pytest.raises(ConfigError, match="head_learning_rate"):
        parse({**decoder, "training": {"head_learning_rate": 1e-3}})
    with pytest.raises(ConfigError, match="head_initialization"):
        parse({**decoder, "training": {"head_initialization": "logistic_regression"}})
    with pytest.raises(ConfigError, match="reads"):
        parse(changed("models", 0, to={**MODEL, "family": "decoder", "reads": "mean"}))


@pytest.mark.usefixtures("here")
def test_sizes_are_remembered_where_the_model_is_not() -> None:
    models = [{**MODEL, "checkpoint": "./unheard-of"}]
    document = {**SMALL, "results": "results", "models": models, "training": {"recipe": "auto"}}
    config = parse(document)
    inputs.cache_revisions(config, {}, {"m": "sha256:1"}, {"m": "1234"})
    read, _ = inputs.find_revisions(config, need_inputs=False)
    assert read.parameters == {"m": 1234}
    plain, _ = inputs.find_revisions(parse({**document, "training": {}}), need_inputs=False)
    assert plain.parameters == {}


@pytest.mark.usefixtures("here")
def test_a_recipe_is_not_chosen_by_a_guessed_size() -> None:
    name = "someone/unheard-of"
    models = [{**MODEL, "checkpoint": name, "revision": "a" * 40}]
    config = parse({**SMALL, "models": models, "training": {"recipe": "auto"}})
    read, _ = inputs.find_revisions(config, need_inputs=False)
    assert read.parameters["m"] > 100_000_000  # BERT base
    with pytest.raises(ModelError, match=f"^{name}: The number of parameters is unknown.*hf down"):
        inputs.find_revisions(config, need_inputs=True)
    folder = Path("hub", f"models--{name.replace('/', '--')}", "snapshots", "a" * 40)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"hidden_size": 8, "num_hidden_layers": 1}')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_CACHE", "hub")
        read, _ = inputs.find_revisions(config, need_inputs=False)
    assert read.parameters["m"] < 1_000_000
