"""Plans of the panel's presets: trainings, their starts, and trained parts."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import jsonschema
import pytest
import yaml

from planned_presets import PRESETS, plan_preset
from tasktransfer.config import generate_schema
from tasktransfer.designs import DESIGNS, load_config
from tasktransfer.designs.panel.substitutes import list_substitutes
from tasktransfer.errors import ConfigError

pytestmark = pytest.mark.usefixtures("datasets_of_one_test")


def test_the_paper_has_120_trainings_and_1280_few_shot_and_3_of_response_selection() -> None:
    _, made = plan_preset("panel")
    kinds = Counter(stage.kind for stage in made.stages)
    assert kinds == {
        "joint": 10, "expert": 50, "whole": 50, "single": 10, "few": 1280, "selection": 3,
    }  # fmt: skip
    assert sum(kinds[kind] for kind in ("joint", "expert", "whole", "single")) == 120


def test_stages_are_those_of_section_6_c() -> None:
    config, made = plan_preset("panel", seeds=1, few_shot=None, selection=None)
    by_kind: dict[str, list[Any]] = {}
    for stage in made.stages:
        by_kind.setdefault(stage.kind, []).append(stage)
    (joint,) = by_kind["joint"]
    assert joint.train_tasks == tuple(sorted(config.domains))
    assert (joint.training.learning_rate, joint.training.batch_size) == (5e-6, 32)
    assert joint.training.weight_decay > 0  # AdamW
    selection = joint.selection
    assert (selection.measure, selection.every, selection.patience) == ("accuracy", 2000, 10)
    assert joint.training.epochs == 3
    for expert in by_kind["expert"]:
        (domain,) = expert.train_tasks
        assert expert.parents == (joint,)
        assert expert.trains == (f"adapter.{domain}", f"head.{domain}")
        assert (expert.training.learning_rate, expert.training.epochs) == (1e-5, 10)
        assert (expert.selection.every, expert.selection.patience) == (1024, 3)
        assert expert.model.adapter_reduction == 16
    for stage in (*by_kind["whole"], *by_kind["single"]):
        assert stage.starts == ()
        assert stage.trains == ()
        assert stage.model.adapter_reduction is None


def test_merging_trains_nothing() -> None:
    methods = ["panel", "panel-mean", "panel-max", "panel-min"]
    _, panel = plan_preset("panel", methods=methods[:1], seeds=1, few_shot=None, selection=None)
    _, merged = plan_preset("panel", methods=methods, seeds=1, few_shot=None, selection=None)
    assert {s.digest for s in panel.stages} == {s.digest for s in merged.stages}
    outcomes = {run.method: run.outcome.starts for run in merged.runs}  # type: ignore[union-attr]
    assert {start.merged for start in outcomes["panel-max"]} == {"max"}
    assert len(outcomes["panel-mean"]) == 5


def test_few_shot_starts_from_one_checkpoint_of_the_averaged_panel_and_of_single() -> None:
    config, made = plan_preset("panel-laptop")
    few = [stage for stage in made.stages if stage.kind == "few"]
    assert len(few) == 2 * 2 * 2  # methods, draws, by contexts and by items
    for stage in few:
        (task,) = stage.train_tasks
        assert {parent.seed for parent in stage.parents} == {config.seeds[0]}
        adapter = stage.model.adapter_reduction is not None
        assert stage.trains == ((f"adapter.{task}", f"head.{task}") if adapter else ())
        assert stage.selection.measure == "spearman"
        assert stage.tested == (task,)
    whole = dict(config.few_shot.model_dump(), train_encoder=True)  # type: ignore[union-attr]
    _, made = plan_preset("panel-laptop", few_shot=whole)
    assert {stage.trains for stage in made.stages if stage.kind == "few"} == {()}


def test_without_the_filter_every_digest_is_another() -> None:
    _, filtered = plan_preset("panel-demo")
    _, leaky = plan_preset("panel-demo", data={"leaks": {"drop": False}})
    trained = [{s.digest for s in p.stages if s.kind != "few"} for p in (filtered, leaky)]
    assert not trained[0] & trained[1]
    config, _ = plan_preset("panel-demo", controls=["untrained", "leaky"])
    assert config.data.leaks.drop


def test_what_is_only_learnt_from_is_filtered_too() -> None:
    """Items of a set on which few-shot transfer is evaluated may leak like any other."""
    few = {"sets": ["Market_Tiny"], "draws": 1}
    rated = ["Harbour_Tiny", "Orchard_Tiny"]
    _, made = plan_preset("panel-demo", rated_sets=rated, few_shot=few)
    against = [data.settings["against"] for data in made.derived if data.recipe == "without_leaks"]
    assert against == [[*rated, "Market_Tiny"]]


def test_controls_train_nothing_but_what_they_are() -> None:
    """`untrained` is an evaluation of the released encoder; `leaky` is one training per method."""
    _, plain = plan_preset("panel-laptop", controls=[])
    _, with_control = plan_preset("panel-laptop", controls=["untrained"])
    assert {s.digest for s in plain.stages} == {s.digest for s in with_control.stages}
    runs = [run for run in with_control.runs if run.method == "untrained"]
    assert len(runs) == len({run.evaluations[0].digest for run in runs}) > 0
    _, leaky = plan_preset(
        "panel-laptop", controls=["leaky"], methods=["panel-mean", "single", "twin"]
    )
    _, other = plan_preset("panel-laptop", controls=[], methods=["panel-mean", "single", "twin"])
    more = [s for s in leaky.stages if s.digest not in {o.digest for o in other.stages}]
    seeds = {s.seed for s in more}
    assert [(s.kind, s.seed) for s in more] == [(k, n) for n in seeds for k in ("single", "twin")]


def test_the_cosine_of_the_released_encoder_is_rated_in_every_study() -> None:
    for preset in ("panel", "panel-demo", "panel-laptop"):
        _, made = plan_preset(preset, controls=[])
        cosines = [run for run in made.runs if run.method.startswith("cosine-")]
        assert [run.evaluations[0].settings["cosine"] for run in cosines] == [
            "last", "whole", "most",
        ]  # fmt: skip
        assert not any(run.stages for run in cosines)


RATES = {
    "joint": "joint", "expert": "experts", "single": "joint", "whole": "joint", "twin": "twin",
    "few": "few_shot", "labeller": "labeller",
}  # fmt: skip


def test_a_learning_rate_is_the_sections_or_trainings_or_the_papers() -> None:
    methods = ["panel", "panel-mean", "collection", "single", "twin"]
    sections = {name: {"learning_rate": None} for name in ("joint", "experts", "twin")}
    few = {"sets": ["FED_Turn"], "draws": 1, "percentages": [40], "learning_rate": None}
    labeller = {"model": "minilm", "learning_rate": None}
    every = {**sections, "methods": methods, "few_shot": few, "labeller": labeller}
    every["pairs"] = {"labels": "labeller"}

    def rates(**changes: Any) -> dict[str, float]:
        training = {"learning_rate": None, **changes.pop("training", {})}
        _, made = plan_preset("panel-laptop", **{**every, "training": training, **changes})
        return {stage.kind: stage.training.learning_rate for stage in made.stages}

    paper = rates()
    assert (paper["joint"], paper["expert"], paper["few"]) == (5e-6, 1e-5, 1e-5)
    given = rates(training={"learning_rate": 7e-4})
    assert {given[kind] for kind in RATES} == {7e-4}
    for kind, section in RATES.items():
        own = (
            rates(**{section: {**every[section], "learning_rate": 3e-4}})
            if section in every
            else {}
        )
        assert own.get(kind, 3e-4) == 3e-4


def test_classifiers_read_the_first_token_unless_the_pooler_is_requested() -> None:
    _, made = plan_preset("panel-laptop")
    reads = {stage.kind: stage.model.reads for stage in made.stages}
    assert reads["twin"] == "pair"
    assert {reads[kind] for kind in ("joint", "expert", "single", "few")} == {"first_token"}
    model = {"name": "minilm", "family": "encoder", "checkpoint": "./models/all-MiniLM-L6-v2"}
    _, made = plan_preset("panel-laptop", models=[{**model, "reads": "pooler"}])
    reads = {stage.kind: stage.model.reads for stage in made.stages}
    assert {reads[kind] for kind in ("joint", "expert", "single", "few")} == {"own_pooler"}


def test_substitutes_are_named_where_they_apply() -> None:
    laptop = list_substitutes(plan_preset("panel-laptop")[0])
    assert laptop["RoBERTa-base"] == "models/all-MiniLM-L6-v2"
    assert "DailyDialog++" in laptop["DEB"]
    assert laptop["REDDIT conversations"] == "none"
    paper = list_substitutes(plan_preset("panel")[0])
    assert "RoBERTa-base" not in paper
    assert "DEB" not in paper


@pytest.mark.parametrize("design", ["empathetic", "panel", "probes"])
def test_presets_are_right_by_code_and_by_schema(design: str) -> None:
    schema = generate_schema(DESIGNS[design].config)
    on_disk = json.loads((PRESETS.parent / "schemas" / f"{design}.schema.json").read_text())
    assert on_disk == schema, "stale: make schemas"
    presets = sorted(PRESETS.glob(f"{design}*.yaml"))
    assert presets
    for preset in presets:
        load_config(preset)
        jsonschema.validate(yaml.safe_load(preset.read_text()), schema)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"rated_sets": ["Persona_UST"]}, "Persona_USR"),
        ({"domains": ["DailyDialogue"]}, "DailyDialog"),
        ({"labeller": None}, "pairs.labels"),
        ({"labeller": {"model": "deb"}}, "labeller.model"),
        ({"selection": {"domain": "Reddit"}}, "selection.domain"),
        ({"methods": ["panel", "collection"]}, "few_shot"),
        ({"controls": ["leaky"], "methods": ["panel-mean"]}, "Add one of them to methods"),
        ({"pairs": {"labels": "made"}}, "labeller"),
    ],
)
def test_what_cannot_be_is_refused_with_a_remedy(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        load_config(PRESETS / "panel-laptop.yaml", changes)
