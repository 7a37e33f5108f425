"""References as nodes: their plan, the predictors on embeddings, and the table with states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml

from tasktransfer.core.nodes import Fit
from tasktransfer.core.plan import Plan
from tasktransfer.core.references import (
    COLLAPSED,
    CONTRASTIVE,
    FROZEN,
    LEARNED,
    MOST_FREQUENT,
    NEAREST,
    NOT_BETTER,
    REFERENCES,
    SVM,
    TFIDF,
)
from tasktransfer.core.runs import Run
from tasktransfer.data.cache import cache_dataset
from tasktransfer.datasets import get_task
from tasktransfer.datasets.tiny_world import generate_releases
from tasktransfer.designs import open_study
from tasktransfer.designs.transfer.commands import list_baseline_warnings
from tasktransfer.designs.transfer.references import can_predict
from tasktransfer.designs.transfer.runs import NO_MODEL, is_reference, select_transfer_runs
from tasktransfer.designs.transfer.statistics.cells import add_baseline_states
from tasktransfer.designs.transfer.statistics.without_transfer import make_references
from tasktransfer.evaluation.reference import get_predictor
from tasktransfer.jobs.recorded_job import JobOutput
from tasktransfer.jobs.reference_job import predict_tasks
from tasktransfer.results.collect import Collected
from tasktransfer.results.frames import Frames
from tasktransfer.results.rows import Row, read_rows, write_rows
from tasktransfer.results.store import Metadata, build_frame, write_frame
from tasktransfer.results.study import Study
from tasktransfer.selection.values import describe_left_out_targets, leave_out_unlearned_targets
from tasktransfer.tasks.card import Instance, TaskKind
from transfer_frames import COLUMNS

TASKS = ["emotion_recognition", "dialogue_act_classification"]
STUDY: dict[str, Any] = {
    "study": "references",
    "data": {"tiny_world": {"dialogues": 120}},
    "datasets": {"DailyDialog": {"tasks": TASKS}},
    "models": [
        {"name": "bert", "family": "encoder", "checkpoint": "tiny"},
        {"name": "lora", "family": "encoder", "checkpoint": "tiny", "adapter": {"kind": "lora"}},
    ],
    "algorithms": ["baseline"],
    "seeds": 2,
    "training": {"limit_train": 50, "limit_test": 40, "epochs": 1},
}


pytestmark = pytest.mark.usefixtures("here")


def open_changed(**keys: Any) -> Study:
    Path("study.yaml").write_text(yaml.safe_dump({**STUDY, **keys}))
    return open_study("study.yaml")


def list_references(plan: Plan) -> list[Run]:
    return [run for run in plan.runs if is_reference(run)]


def test_a_study_has_no_references_unless_it_names_them() -> None:
    plain, named = open_changed(), open_changed(references=[*REFERENCES])
    assert not list_references(plain.plan)
    assert plain.config.digest == named.config.digest, "no other node changes"
    assert [s.digest for s in plain.plan.stages] == [s.digest for s in named.plan.stages]
    assert len(select_transfer_runs(named.plan)) == len(select_transfer_runs(plain.plan))


def test_a_reference_is_one_fit_per_dataset_and_model() -> None:
    plan = open_changed(references=[NEAREST, MOST_FREQUENT, FROZEN]).plan
    runs = {(run.variant, run.model): run.outcome for run in list_references(plan)}
    assert [*runs] == [
        (MOST_FREQUENT, NO_MODEL),
        *((name, model) for name in (FROZEN, NEAREST) for model in ("bert", "lora")),
    ]
    fit = runs[FROZEN, "bert"]
    assert isinstance(fit, Fit)
    assert fit.tasks == (*TASKS,)
    assert (fit.settings["limit_train"], fit.settings["limit_test"]) == (50, 40)
    # An adapter changes what is trained, and not the checkpoint that is embedded with.
    assert fit.digest == runs[FROZEN, "lora"].digest
    assert set(runs[MOST_FREQUENT, NO_MODEL].settings) == {"limit_train", "limit_test"}  # type: ignore[union-attr]
    assert len(plan.fits) == 3


def test_spans_are_not_predicted_from_embeddings() -> None:
    datasets = {"Friends": {"tasks": ["question_answering"]}}
    plan = open_changed(references=[TFIDF, FROZEN], datasets=datasets).plan
    assert [run.variant for run in list_references(plan)] == [TFIDF]


def test_references_predict_kinds_with_a_fixed_set_of_answers() -> None:
    predicted = {
        kind: [reference for reference in REFERENCES if can_predict(reference, kind)]
        for kind in get_args(TaskKind)
    }
    assert predicted["reply"] == predicted["open_labels"] == []
    assert predicted["span"] == [MOST_FREQUENT, TFIDF, SVM]
    assert predicted["utterance_classification"] == [*REFERENCES]
    assert CONTRASTIVE not in predicted["multi_label"] and FROZEN in predicted["rating"]


# --- predictors on embeddings ---------------------------------------------------------------------

WORDS = ("good", "bad", "car", "bread")


def embed(texts: Sequence[str]) -> Any:
    """Count four words, and add a constant so that no embedding is zero."""
    assert all(text.strip() for text in texts)
    assert len(set(texts)) == len(texts), "each text is embedded once"
    return np.array([[*(text.split().count(word) for word in WORDS), 0.1] for text in texts])


def make_instance(context: str, target: str, **changes: Any) -> Instance:
    names = {"id": context, "dialogue_id": context, "task": TASKS[0], "focus": 0}
    values = {"query": {}, "options": (), "target": (target,), **names, **changes}
    return Instance(context=context, **values)


def classified(text: str, label: str, before: str = "") -> Instance:
    context = f"{before} {text}".strip()
    return make_instance(context, label, focus=len(context) - len(text))


TRAIN = [
    classified("good car", "happiness"),
    classified("good bread", "happiness"),
    classified("bad car", "sadness"),
    classified("bad bread", "sadness", before="a car"),
]


@pytest.mark.parametrize("name", [FROZEN, NEAREST])
def test_labels_are_predicted_from_the_part_in_focus(name: str) -> None:
    test = [classified("bad bad car car", "?"), classified("good", "?", before="bread")]
    predict = get_predictor(name, embed)
    task = get_task("DailyDialog", TASKS[0])
    assert predict(task, TRAIN, test, 0) == [("sadness",), ("happiness",)]


def test_one_label_in_training_is_always_predicted() -> None:
    task = get_task("DailyDialog", TASKS[0])
    predict = get_predictor(FROZEN, embed)
    assert predict(task, TRAIN[:2], [TRAIN[3]], 0) == [("happiness",)]


@pytest.mark.parametrize("name", [FROZEN, NEAREST])
def test_the_option_that_shares_the_contexts_words_is_chosen(name: str) -> None:
    task = get_task("DailyDialog", "adversarial_response_selection")
    count = len(task.labels)

    def choice(context: str, options: Sequence[str], gold: int) -> Instance:
        padded = (*options, *["nothing"] * (count - len(options)))
        query = {"question": "which"}
        return make_instance(
            context, task.labels[gold], task=task.name, query=query, options=padded
        )

    train = [
        choice("car car", ["bread", "car"], 1),
        choice("bread", ["bread", "car"], 0),
        choice("good", ["bad", "good"], 1),
        choice("bad", ["bad", "car"], 0),
    ]
    predict = get_predictor(name, embed)
    assert predict(task, train, [choice("bad bad", ["good", "bad"], 1)], 0) == [(task.labels[1],)]


# --- the table ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finished:
    """Results of a study: ``right`` returns the fraction of right answers of a run.

    The other answers are wrong at random, or the first label if the fraction is 0.
    """

    study: Study
    right: Callable[[Run, str], float]

    @property
    def runs(self) -> tuple[Run, ...]:
        return self.study.plan.runs

    def rows(self, node: Any) -> pa.Table:
        run = next(run for run in self.runs if node in run.judged)
        tasks = node.tasks if isinstance(node, Fit) else node.tested
        rows = [row for task in tasks for row in self._answer(run, task)]
        folder = Path(self.study.get_node_folder(node))
        folder.mkdir(parents=True, exist_ok=True)
        dataset = node.data.name
        return read_rows(
            folder / "rows.parquet",
            write_rows(folder, rows, digest=node.digest, dataset=dataset, file="rows.parquet"),
        )

    def _answer(self, run: Run, task: str) -> Iterator[Row]:
        labels = get_task("DailyDialog", task).labels
        share = self.right(run, task)
        golds = np.random.default_rng(0).choice(labels, 100)
        chance = np.random.default_rng(run.seed + 1)
        is_right = chance.random(100) < share
        for index, (gold, right) in enumerate(zip(golds, is_right, strict=True)):
            wrong = labels[0] if share == 0 else str(chance.choice(labels))
            answer = str(gold) if right else wrong
            yield Row(index, task, f"i{index}", (answer,), (str(gold),), None, f"d{index // 2}")


@pytest.fixture
def study(here: Path) -> Study:
    return open_changed(references=[MOST_FREQUENT, FROZEN], models=STUDY["models"][:1])


def build_table(study: Study, right: Callable[[Run, str], float]) -> pd.DataFrame:
    return make_references(gather_frames(Finished(study, right)))


METADATA = Metadata("references", "c" * 64, True, 4)


def gather_frames(collected: Any) -> Frames:
    return Frames(collected.study, {}, METADATA, cast(Collected, collected))


def test_a_baseline_is_compared_with_each_reference_in_pairs(study: Study) -> None:
    shares = {FROZEN: 0.5, MOST_FREQUENT: 0.0, "": 0.9}
    table = build_table(study, lambda run, _: shares[run.about.get("reference", "")])
    assert len(table) == len(TASKS) * 2
    assert table.groupby("target")["is_best"].sum().tolist() == [1, 1]
    assert set(table.loc[table["is_best"], "reference"]) == {FROZEN}
    assert (table["delta"] - (table["score"] - table["reference_score"])).abs().max() < 1e-9
    assert (table["low"] < table["delta"]).all() and (table["delta"] < table["high"]).all()
    assert (table["state"] == LEARNED).all() and table["n_seeds"].eq(2).all()
    assert (table["q"] >= table["p"]).all()
    assert [*table["states"].iloc[0]] == [LEARNED, LEARNED]


def test_a_baseline_below_the_best_reference_has_not_learned(study: Study) -> None:
    def right(run: Run, task: str) -> float:
        if is_reference(run):
            return 0.8 if run.variant == FROZEN else 0.0
        return 0.6 if task == TASKS[0] else 0.95

    states = build_table(study, right).groupby("target")["state"].unique().map(list)
    assert states.to_dict() == {TASKS[0]: [NOT_BETTER], TASKS[1]: [LEARNED]}


def test_half_of_the_runs_with_one_answer_are_a_collapsed_cell(study: Study) -> None:
    def right(run: Run, task: str) -> float:
        if is_reference(run):
            return 0.3
        return 0.0 if run.seed == 0 and task == TASKS[0] else 0.9

    table = build_table(study, right).drop_duplicates("target").set_index("target")
    assert table["state"].to_dict() == {TASKS[0]: COLLAPSED, TASKS[1]: LEARNED}
    assert [*table.loc[TASKS[0], "states"]] == [COLLAPSED, LEARNED]


def test_one_seed_has_no_q() -> None:
    one = open_changed(references=[FROZEN], models=STUDY["models"][:1], seeds=1)
    table = build_table(one, lambda run, _: 0.4 if is_reference(run) else 0.9)
    assert table["p"].notna().all() and table["q"].isna().all()


def test_without_a_finished_reference_the_table_is_empty(study: Study) -> None:
    nothing = SimpleNamespace(study=study, runs=(), rows=lambda _: None)
    none = make_references(gather_frames(nothing))
    assert none.empty and "state" in none


def test_a_run_ends_with_a_warning_about_baselines_that_have_not_learned(study: Study) -> None:
    assert list_baseline_warnings(study) == [], "no table"

    def write(right: Callable[[Run, str], float]) -> None:
        frames = {"runs": build_frame([], COLUMNS["runs"]), "references": build_table(study, right)}
        for name, frame in frames.items():
            write_frame(Path(study.tables, f"{name}.parquet"), frame, COLUMNS[name], METADATA)

    write(lambda run, task: 0.5 if is_reference(run) else 0.9)
    assert list_baseline_warnings(study) == []
    write(lambda run, task: 0.5 if is_reference(run) else 0.2 if task == TASKS[0] else 0.9)
    first, *_ = list_baseline_warnings(study)
    assert first.startswith("1 of 2 baselines has not learned. Scores of baselines")
    assert f"DailyDialog/{TASKS[0]}" in first and "difference" in first


def test_selectors_are_not_judged_on_targets_that_are_not_learned(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def frame(*rows: tuple[str, ...], last: str) -> pd.DataFrame:
        return pd.DataFrame(rows, columns=["dataset", "model", "target", last])

    deltas = frame(("D", "m", "x", "a"), ("D", "m", "y", "a"), ("D", "n", "x", "b"), last="source")
    assert leave_out_unlearned_targets(deltas, None).equals(deltas)
    states = frame(("D", "m", "x", COLLAPSED), ("D", "n", "x", LEARNED), last="state")
    left = leave_out_unlearned_targets(deltas, states)
    assert left[["model", "target"]].to_numpy().tolist() == [["m", "y"], ["n", "x"]]
    assert "1 target left out" in (said := capsys.readouterr().out)
    assert "D/m/x" in said


def test_the_note_on_regret_counts_the_targets_that_are_left_out() -> None:
    deltas = pd.DataFrame(
        [(*names, 1) for names in (*[("D", "m", "x")] * 2, ("D", "m", "y"), ("D", "n", "x"))]
        + [("D", "m", "z", 2)],
        columns=["dataset", "model", "target", "n_sources"],
    )

    def states_of(*unlearned: tuple[str, str]) -> pd.DataFrame:
        rows = [("D", model, target, NOT_BETTER) for model, target in unlearned]
        names = ["dataset", "model", "target", "state"]
        return pd.DataFrame([*rows, ("D", "m", "y", LEARNED)], columns=names)

    def describe(*unlearned: tuple[str, str]) -> list[str]:
        references = states_of(*unlearned)
        return describe_left_out_targets({"deltas": deltas, "references": references})

    assert describe_left_out_targets({"deltas": deltas}) == describe(("m", "z")) == []
    reason = "Targets whose baselines have not learned are left out"
    assert describe(("m", "x")) == [f"{reason} (1 target with m)."]
    assert describe(("m", "x"), ("n", "x")) == [f"{reason} (1 target with m and 1 target with n)."]
    one_model = {"deltas": deltas[deltas["model"] == "m"], "references": states_of(("m", "x"))}
    assert describe_left_out_targets(one_model) == [f"{reason} (1 target)."]


def test_a_cell_has_the_state_of_its_targets_baseline() -> None:
    names = ["dataset", "model", "target"]
    cells = pd.DataFrame([("D", "m", "x"), ("D", "n", "x"), ("D", "m", "y")], columns=names)
    references = pd.DataFrame(
        [("D", "m", "x", COLLAPSED), ("D", "m", "x", COLLAPSED), ("D", "n", "x", LEARNED)],
        columns=[*names, "state"],
    )
    states = add_baseline_states(cells, references)["baseline_state"]
    assert states.tolist()[:2] == [COLLAPSED, LEARNED]
    assert states.isna().tolist() == [False, False, True]
    assert add_baseline_states(cells, None)["baseline_state"].isna().all()


# --- the job --------------------------------------------------------------------------------------


def test_the_job_predicts_the_test_split_within_the_limits(here: Path) -> None:
    study = open_changed(references=[TFIDF])
    release = here / "world"
    generate_releases(release, dialogues=120)
    cache_dataset("DailyDialog", release, True, Path(study.get_instances_folder("DailyDialog")))
    (fit,) = study.plan.fits
    made = JobOutput()
    predict_tasks(study, fit, made)
    assert {task: sizes["test"] for task, sizes in made.sizes.items()} == {
        TASKS[0]: 40,
        TASKS[1]: 30,  # all that there are
    }
    assert max(sizes["train"] for sizes in made.sizes.values()) <= 50
    assert len(made.rows) == 70
    for task in TASKS:
        score = made.results[task]["score"]
        assert score is not None and score > 30, "the tiny world's words tell its labels"
