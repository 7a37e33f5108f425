"""Selectors: their functions on small numbers, their nodes, and no access to test scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from delta_frames import make_deltas
from small_study import SMALL, changed, parse, refusal

from tasktransfer.core.nodes import Fit
from tasktransfer.designs.transfer import columns
from tasktransfer.designs.transfer.plan import build_plan
from tasktransfer.designs.transfer.statistics.choices import compute_study_values
from tasktransfer.errors import ConfigError, RecordError
from tasktransfer.results.frames import list_column_names
from tasktransfer.results.revisions import find_revisions
from tasktransfer.results.store import build_frame
from tasktransfer.selection import methods
from tasktransfer.selection.choose import select_dev_deltas, select_targets_and_sources
from tasktransfer.selection.evidence import add_source_mean, build_evidence, list_selectors
from tasktransfer.selection.inputs import Arrays, SelectorInput
from tasktransfer.selection.methods import SELECTORS
from tasktransfer.selection.nodes import is_selection_run
from tasktransfer.selection.selector import Selector
from tasktransfer.selection.values import Tables, compute_study_regret
from tasktransfer.tasks.card import Instance

TASKS = ("emotion_recognition", "dialogue_nli", "topic_classification")


def instance(text: str, label: str) -> Instance:
    return Instance("1", "d", "t", text, 0, {"target": "now"}, (), (label,))


def asked(**arrays: dict[str, Any]) -> SelectorInput:
    """Return a target and two sources, of which ``near`` shares its words and directions."""
    texts = {"target": "red apple", "near": "red apple pie", "far": "blue sky"}
    random = np.random.default_rng(0)
    classes = [n % 2 for n in range(40)]

    def features(of: str) -> np.ndarray:
        signal = np.array(classes) if of == "near" else random.integers(0, 2, 40)
        return np.column_stack([signal, np.ones(40)]) + random.normal(0, 0.1, (40, 2))

    def measured(what: str, of: str | None, on: str) -> Arrays:
        direction = np.array([0.0, 1.0]) if on == "far" else np.array([1.0, 0.1])
        match what:
            case "features":
                read = features(str(of))
                theta = np.clip(read[:, :1], 0.01, 0.99)
                return {"features": read, "probabilities": np.hstack([theta, 1 - theta])}
            case "losses":
                drop = {"near": 0.5, "far": 0.0}[on] if of else 0.0
                return {"losses": np.full(5, 2.0 - drop)}
            case "fisher":
                return {"w": direction, "b": direction[::-1]}
            case "gradients":
                return {"gradient": direction}
            case _:
                return {"embeddings": direction + random.normal(0, 0.01, (40, 2))}

    return SelectorInput(
        target="target",
        sources=("near", "far"),
        kinds={"target": "span", "near": "span", "far": "multi_label"},
        sizes={"near": 9, "far": 4},
        instances=lambda task: [instance(texts[task], "ab"[n]) for n in classes],
        measured=measured,
        transfers={"near": np.array([1.0, 3.0]), "far": np.array([])},
    )


@pytest.mark.parametrize(
    "name", [n for n in SELECTORS if n not in ("random", "probe", "esm_logme")]
)
def test_every_selector_prefers_what_is_near(name: str) -> None:
    function = SELECTORS[name].values
    assert function is not None
    found = function(asked())
    assert set(found) == {"near", "far"}
    assert found["near"] is not None
    assert found["far"] is None or found["near"] > found["far"]


def test_a_mapped_base_has_a_value() -> None:
    assert all(np.isfinite(value) for value in methods.score_by_esm_logme(asked()).values())


def test_ranks_are_fused_over_tensors() -> None:
    assert methods.score_by_taskemb(asked()) == {"near": 2 / 61, "far": 2 / 62}


def test_values_of_sources_and_chance() -> None:
    assert methods.score_by_source_mean(asked()) == {"near": 2.0, "far": None}
    assert methods.score_by_size(asked()) == {"near": 9.0, "far": 4.0}
    assert methods.score_by_random(asked()) == {"near": 0.0, "far": 0.0}


# --- nodes ----------------------------------------------------------------------------------------


def planned(*selectors: str, **more: Any) -> Any:
    study = {
        **changed("selectors", to=list(selectors)),
        "algorithms": ["pretrain_finetune"],
        **more,
    }
    config = parse(study)
    revisions, _ = find_revisions(config, need_inputs=False)
    return build_plan(config, revisions)


def test_without_selectors_nothing_changes() -> None:
    config = parse(SMALL)
    assert "selectors" not in config.build_digest_content()
    assert not [run for run in planned().runs if is_selection_run(run)]


def test_measurements_are_shared_and_computed_once() -> None:
    alone, both = planned("logme"), planned("logme", "hscore", "leep", "nleep")
    features = [{fit.digest for fit in p.fits if fit.learner == "features"} for p in (alone, both)]
    assert features[0] == features[1]
    labelled = {source for pair in _pairs(both) for source in pair}
    assert len(features[0]) == len(labelled)
    assert {fit.learner for fit in planned("embedding", "roe").fits} == {"embeddings", "selector"}


def _pairs(plan: Any) -> list[tuple[str, str]]:
    (fit,) = (f for f in plan.fits if f.settings.get("selector") == "logme")
    return [(source, target) for target, of in fit.settings["sources"].items() for source in of]


def test_selectors_read_no_test_split_and_no_transfer_to_the_target() -> None:
    plan = planned(*SELECTORS)
    for run in (run for run in plan.runs if is_selection_run(run)):
        if run.variant == "probe":
            (stage,) = run.outcome.stages
            assert stage.tested == ()
            assert stage.training.epochs == 1
            continue
        assert isinstance(run.outcome, Fit)
        for fit in (run.outcome, *run.outcome.reads):
            starts = [fit.on.stage] if fit.on and fit.on.stage else []
            assert not any(stage.starts or len(stage.train_tasks) > 1 for stage in starts)
            assert "split" not in fit.settings


def test_kinds_without_classes_have_no_value() -> None:
    selector = SELECTORS["leep"]
    assert selector.explain_absence("dialogue_classification", "span", "encoder")
    assert "source is span" in str(
        selector.explain_absence("span", "dialogue_classification", "encoder")
    )
    assert selector.explain_absence(*["utterance_classification"] * 2, "encoder") is None
    assert SELECTORS["warmup_drop"].explain_absence("span", "span", "decoder") is None
    assert "family encoder" in str(
        SELECTORS["warmup_drop"].explain_absence("span", "span", "encoder")
    )


def test_a_raised_version_recomputes_the_values_of_a_selector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = {fit.digest for fit in planned("logme", "hscore").fits}
    raised = dataclasses.replace(SELECTORS["logme"], version=2)
    monkeypatch.setitem(SELECTORS, "logme", raised)
    after = {fit.digest for fit in planned("logme", "hscore").fits}
    assert len(before - after) == 1


def test_unknown_names_are_refused() -> None:
    text = refusal(changed("selectors", to=["logmee"]))
    assert "logme" in text
    assert "selectors" in text


# --- plugins --------------------------------------------------------------------------------------

PLUGIN = '''
import numpy as np
from tasktransfer.selection.selector import Selector

def longest(request):
    """Sources with long inputs first."""
    return {s: float(np.mean([len(text) for text in request.texts(s)])) for s in request.sources}

SELECTORS = [Selector("longest", reads=("texts",), values=longest)]
'''


def test_a_plugin_brings_a_selector(tmp_path: Path) -> None:
    file = tmp_path / "longest.py"
    file.write_text(PLUGIN)
    try:
        plan = planned("longest", plugins=[str(file)])
        assert {fit.settings["selector"] for fit in plan.fits} == {"longest"}
    finally:
        SELECTORS.pop("longest", None)


def test_a_plugins_selector_takes_no_name_of_the_package() -> None:
    with pytest.raises(
        ConfigError, match="The package already contains a selector with the name 'logme'"
    ):
        methods.register_selector(Selector("logme", ("texts",), methods.score_by_tfidf))
    with pytest.raises(ConfigError, match="cannot compute values"):
        methods.register_selector(Selector("mine"))


# --- tables ---------------------------------------------------------------------------------------


def tables(
    score: Callable[[str, str, int], float], dev: Callable[[str, str, int], float]
) -> Tables:
    """Return transfers between three tasks with two seeds.

    ``score`` returns the test delta of a source, target and seed, ``dev`` the dev delta.
    """
    deltas = make_deltas(lambda m, a, s, t, seed: score(s, t, seed), tasks=TASKS)
    known_runs = []
    for row in deltas.itertuples(index=False):
        known = {"digest": row.digest, "dev_score": 60 + dev(row.source, row.target, row.seed)}
        known_runs.append({**known, "target": row.target, "seconds": 10.0})
    for digest, target in deltas[["baseline_digest", "target"]].drop_duplicates().to_numpy():
        known_runs.append({"digest": digest, "target": target, "dev_score": 60.0, "seconds": 5.0})
    runs = pd.DataFrame(known_runs).reindex(columns=list_column_names(columns.RUNS))
    rows = [("DailyDialog", task, 10 * n, 5, 5) for n, task in enumerate(TASKS)]
    sizes = build_frame(rows, columns.SIZES)
    return {"transfer_runs": runs, "deltas": deltas, "sizes": sizes}


CONFIG = {
    **SMALL,
    "models": [{"name": "bert", "family": "encoder", "checkpoint": "tiny"}],
    "selectors": ["random", "size", "kind", "source_mean", "logme"],
}


def test_a_changed_test_score_changes_no_value_and_judges_them() -> None:
    config = parse(CONFIG)
    random = np.random.default_rng(1)
    noise = {(s, t, seed): random.normal() for s in TASKS for t in TASKS for seed in (0, 1)}

    def dev(source: str, target: str, seed: int) -> float:
        return TASKS.index(source) + noise[source, target, seed] / 10

    one = tables(lambda s, t, seed: float(TASKS.index(s)), dev)
    other = tables(lambda s, t, seed: -float(TASKS.index(s)), dev)
    values = [compute_study_values(config, each) for each in (one, other)]
    pd.testing.assert_frame_equal(*values)
    regrets = [
        compute_study_regret(each, of).query("measure == 'regret@1'").set_index("selector")["value"]
        for each, of in zip((one, other), values, strict=True)
    ]
    assert regrets[0]["source_mean"] == 0
    assert regrets[1]["source_mean"] > 0
    assert regrets[1]["random"] == pytest.approx(regrets[0]["random"])


def test_evidence_has_the_gains_and_values_of_a_studys_tables() -> None:
    a, b, c = TASKS
    whole = tables(
        lambda s, t, seed: float(TASKS.index(s)), lambda s, t, seed: -float(TASKS.index(s))
    )
    values = compute_study_values(parse(CONFIG), whole)
    states = pd.DataFrame(
        [("DailyDialog", model, c, "collapsed") for model in set(whole["deltas"]["model"])],
        columns=["dataset", "model", "target", "state"],
    )
    evidence = build_evidence(whole, values, states)
    assert len(evidence) == len(whole["deltas"])
    assert set(evidence.loc[~evidence["learned"], "target"]) == {c}
    row = evidence[(evidence["source"] == b) & (evidence["target"] == a)].iloc[0]
    assert (row["delta"], row["dev_delta"]) == (1.0, -1.0)
    assert (row["size"], row["kind"]) == (10.0, 0.0)
    assert list_selectors(evidence) == ["size", "kind", "logme"]
    means = add_source_mean(evidence).set_index(["source", "target", "seed"])["source_mean"]
    computed = values[values["selector"] == "source_mean"]
    computed = computed.set_index(["source", "target", "seed"])["value"]
    pd.testing.assert_series_equal(means, computed[means.index], check_names=False)


def test_values_for_targets_that_are_left_out_change_nothing() -> None:
    """A target without a learned baseline has values, but does not judge them."""
    random = np.random.default_rng(4)
    whole = tables(lambda *_: random.normal(), lambda *_: random.normal())
    values = compute_study_values(parse(CONFIG), whole)
    *judging, left = TASKS
    some = {**whole, "deltas": whole["deltas"][whole["deltas"]["target"] != left]}
    regret = compute_study_regret(some, values)
    pd.testing.assert_frame_equal(
        regret, compute_study_regret(some, values[values["target"].isin(judging)])
    )


def test_source_mean_is_of_dev_gains_on_other_targets() -> None:
    values = compute_study_values(
        parse(CONFIG), tables(lambda *_: 0.0, lambda s, t, seed: len(t) + seed)
    )
    rows = values[values["selector"] == "source_mean"].set_index(["source", "target", "seed"])
    a, b, c = TASKS
    assert rows.loc[(a, b, 1), "value"] == len(c) + 1
    assert rows.loc[(a, b, 1), "seconds"] == 10.0
    assert set(rows["algorithm"]) == {"multitask"}


def test_what_is_missing_says_why() -> None:
    values = compute_study_values(parse(CONFIG), tables(lambda *_: 0.0, lambda *_: 0.0))
    logme = values[values["selector"] == "logme"]
    assert logme["value"].isna().all()
    assert set(logme["reason"]) == {"not computed yet: run snakemake"}
    assert values[values["selector"] == "size"]["reason"].isna().all()


def test_a_selector_chooses_the_sources_of_several() -> None:
    of_dev = tables(lambda *_: 0.0, lambda s, t, seed: 0.0)
    a, b, c = TASKS  # sizes rise in this order
    values = compute_study_values(parse(CONFIG), of_dev)
    by_size = values[values["selector"] == "size"]
    chosen = select_from_tables_of(of_dev, by_size)
    assert {one["target"]: one["sources"] for one in chosen} == {a: [c, b], b: [c, a], c: [b, a]}
    assert {one["chosen_by"] for one in chosen} == {"size"}
    study = changed("multi_source", to={"mode": "auto", "choose_by": "logme"})
    study["multi_source"] |= {"sources_per_target": 1, "targets_per_dataset": 1}
    assert "is not in selectors" in refusal(study)
    assert parse({**study, "selectors": ["logme"]}).multi_source.choose_by == "logme"


def select_from_tables_of(tables: Tables, values: pd.DataFrame) -> list[Any]:
    deltas = select_dev_deltas(tables["deltas"], tables["transfer_runs"])
    return list(select_targets_and_sources(deltas, 3, 2, "size", values))


def test_a_source_without_a_value_is_not_chosen() -> None:
    """By name it would be first."""
    of_dev = tables(lambda *_: 0.0, lambda s, t, seed: 0.0)
    values = compute_study_values(parse(CONFIG), of_dev).query("selector == 'size'").copy()
    a, b, c = TASKS
    values.loc[values["source"] == b, ["value", "reason"]] = (np.nan, "b has no classes")
    deltas = select_dev_deltas(of_dev["deltas"], of_dev["transfer_runs"])
    chosen = select_targets_and_sources(deltas, 3, 1, "size", values)
    assert {one["target"]: one["sources"] for one in chosen} == {a: [c], b: [c], c: [a]}
    with pytest.raises(RecordError, match=r"value of size \(b has no classes\), but 2"):
        select_targets_and_sources(deltas, 3, 2, "size", values)
