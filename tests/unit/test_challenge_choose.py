"""What is submitted is chosen by dev scores, and the test is never looked at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from challenge_records import by_seed, finish_all, make_study, refresh_digest

from tasktransfer.datasets import DATASETS, get_task
from tasktransfer.designs.transfer.challenge.choose import choose, finished, of_record
from tasktransfer.designs.transfer.challenge.policy import Policy, parse_policy
from tasktransfer.designs.transfer.challenge.submit import Wish, make
from tasktransfer.designs.transfer.runs import TransferRun as Run
from tasktransfer.errors import ConfigError, TaskTransferError
from tasktransfer.results.records import read_record
from tasktransfer.results.study import Study

TASKS = list(DATASETS["Friends"].tasks)
QA, RE = "question_answering", "relation_extraction"


def dev(run: Run) -> float:
    """multitask from relation extraction is best on average; single seeds go up to 90."""
    best = run.algorithm == "multitask" and run.sources in {(RE,), (QA,)}
    lucky = run.algorithm == "pretrain_finetune" and run.seed == 1
    return 60.0 + 5 * run.seed + (RE in run.sources) if best else 90.0 if lucky else 20.0


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Everything finished, two seeds."""
    made = make_study(tmp_path_factory.mktemp("choose"))
    finish_all(made, dev)
    return made


def picked(
    study: Study, policy: str = "best-dev", ensemble: Any = None
) -> dict[str, tuple[Any, ...]]:
    """Task → (algorithm, sources, seeds, the baseline's seeds)."""
    chosen = choose(study, "Friends", "tiny-bert", Policy(policy), ensemble)
    return {
        choice.task: (
            choice.transfer.candidate.algorithm,
            choice.transfer.candidate.sources,
            [one.run.seed for one in choice.transfer.seeds],
            [one.run.seed for one in choice.baseline.seeds],
        )
        for choice in chosen.choices
    }


def test_best_dev_is_the_best_mean_over_seeds_and_then_the_best_seed(study: Study) -> None:
    found = picked(study)
    assert list(found) == TASKS
    # The mean of 60 and 65 beats that of 20 and 90; from relation extraction it is one more.
    assert found[QA] == ("multitask", (RE,), [1], [0])
    assert found[RE] == ("multitask", (QA,), [1], [0])
    assert found["reading_comprehension"] == ("multitask", (RE,), [1], [0])


def test_an_ensemble_takes_all_seeds_best_first(study: Study) -> None:
    assert picked(study, ensemble="majority")[QA] == ("multitask", (RE,), [1, 0], [0, 1])


def test_a_fixed_algorithm_has_its_best_source(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    finish_all(study, dev)
    policy = parse_policy("fixed:pretrain_finetune", "Friends", None)
    for choice in choose(study, "Friends", "tiny-bert", policy, None).choices:
        assert choice.transfer.candidate.algorithm == "pretrain_finetune"
        assert choice.transfer.seeds[0].dev_score == 90.0


def test_ties_go_to_fewer_sources_then_algorithm_then_name_then_the_lowest_seed(
    tmp_path: Path,
) -> None:
    several = {
        "mode": "named",
        "named": [{"dataset": "Friends", "target": "reading_comprehension", "sources": [QA, RE]}],
    }
    study = make_study(tmp_path, multi_source=several)
    finish_all(study, lambda run: 40.0)
    found = picked(study)["reading_comprehension"]
    assert found == ("pretrain_finetune", (QA,), [0], [0])


def test_several_sources_take_part(tmp_path: Path) -> None:
    target = "reading_comprehension"
    several = {
        "mode": "named",
        "named": [{"dataset": "Friends", "target": target, "sources": [QA, RE]}],
    }
    study = make_study(tmp_path, multi_source=several)
    finish_all(study, lambda run: 70.0 if len(run.sources) == 2 else 40.0)
    assert picked(study)[target][1] == (QA, RE)


# --- never by test score ---


def chosen_bytes(study: Study, out: Path, **wish: Any) -> tuple[bytes, str]:
    made = make(study, Wish("Friends", "tiny-bert", **wish), out)
    return made.archive.read_bytes(), made.text


@pytest.mark.parametrize("wish", [{}, {"ensemble": "majority"}, {"policy": "fixed:multitask"}])
def test_test_scores_are_not_read(tmp_path: Path, wish: dict[str, Any]) -> None:
    """Turned upside down and set to extremes, in records and predictions, right answers too, they
    change no byte of the archive and no word of what is said."""
    studies = []
    for folder, score in (("low", lambda r: 0.0), ("against", lambda r: 100.0 - dev(r))):
        made = make_study(tmp_path / folder)
        finish_all(made, dev, test=score)
        studies.append(made)
    spoil_golds_and_scores(studies[1])
    out = tmp_path / "a.zip"
    first, second = (chosen_bytes(made, out, **wish) for made in studies)
    assert first[0] == second[0]
    assert first[1].replace("low", "against") == second[1]


def spoil_golds_and_scores(study: Study) -> None:
    """Other right answers and scores in every predictions file, and the records made to fit."""
    for run in study.plan.runs:
        path = Path(study.folder(run.scored)) / "predictions.parquet"
        table = pq.read_table(path)
        golds = pa.array([["another"]] * table.num_rows, pa.list_(pa.string()))
        scores = pa.array([100.0 * (i % 2) for i in range(table.num_rows)])
        for name, column in (("gold", golds), ("score", scores)):
            at = table.schema.get_field_index(name)
            table = table.set_column(at, table.schema.field(at), column)
        pq.write_table(table, path, compression="zstd")
        refresh_digest(path)


class Untouchable(dict[str, Any]):
    """A record that fails when anything of the test is asked for."""

    def __getitem__(self, key: str) -> Any:
        assert key not in {"score", "test"}, f"{key} of a record was read"
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        assert key not in {"score", "test"}, f"{key} of a record was read"
        return super().get(key, default)

    def values(self) -> Any:
        raise AssertionError("all of a record was read")

    def items(self) -> Any:
        raise AssertionError("all of a record was read")


def test_what_choosing_sees_is_made_without_touching_the_test(study: Study) -> None:
    run = study.plan.runs[-1]
    path = study.record(run.scored)
    record = Untouchable(read_record(Path(path)))
    seen = of_record(run, path, record)  # type: ignore[arg-type]
    assert seen == finished(study, run)
    assert not [name for name in type(seen).__slots__ if "test" in name or name == "score"]
    with pytest.raises(AssertionError, match="was read"):
        record["score"]


# --- named runs ---


def runs_file(folder: Path, **changes: Any) -> Path:
    named: dict[str, Any] = {
        task: {"algorithm": "multitask", "sources": [QA if task != QA else RE], "seed": 0}
        for task in TASKS
    }
    for task, change in changes.items():
        if change is None:
            del named[task]
        else:
            named[task] = named[task] | change
    path = folder / "runs.yaml"
    path.write_text(yaml.safe_dump(named))
    return path


def test_named_runs(study: Study, tmp_path: Path) -> None:
    path = runs_file(tmp_path, **{QA: {"algorithm": "pretrain_finetune", "baseline_seed": 1}})
    policy = parse_policy("named", "Friends", path)
    chosen = choose(study, "Friends", "tiny-bert", policy, None)
    by_task = {choice.task: choice for choice in chosen.choices}
    qa, other = by_task[QA], by_task[RE]
    assert (qa.transfer.candidate.algorithm, qa.transfer.seeds[0].run.seed) == (
        "pretrain_finetune",
        0,
    )
    assert qa.baseline.seeds[0].run.seed == 1
    assert other.transfer.candidate.algorithm == "multitask"
    assert other.transfer.seeds[0].run.seed == 0, "named, though seed 1 is better"


def test_json_is_read_as_well(study: Study, tmp_path: Path) -> None:
    text = json.dumps(yaml.safe_load(runs_file(tmp_path).read_text()))
    (tmp_path / "runs.json").write_text(text)
    policy = parse_policy("named", "Friends", tmp_path / "runs.json")
    assert policy.named[QA].sources == (RE,)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({QA: None}, [f"{QA}: is missing"]),
        ({QA: {"algorithm": "baseline"}}, [f"{QA}.algorithm: unknown transfer algorithm"]),
        ({QA: {"sources": ["dialogue_nli"]}}, ["unknown task of Friends 'dialogue_nli'"]),
        ({QA: {"sources": []}}, [f"{QA}.sources: found [], expected 1 or more items"]),
        ({QA: {"seed": -1}, RE: {"sed": 1}}, [f"{QA}.seed", "did you mean 'seed'", "2 problems"]),
    ],
)
def test_wrong_files_of_named_runs(
    tmp_path: Path, changes: dict[str, Any], told: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_policy("named", "Friends", runs_file(tmp_path, **changes))
    for text in (*told, "runs.yaml"):
        assert text in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "a: [1", "3"])
def test_files_of_named_runs_that_are_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "runs.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"runs\.yaml"):
        parse_policy("named", "Friends", path)


def test_named_runs_that_the_plan_does_not_have(study: Study, tmp_path: Path) -> None:
    changes = {QA: {"algorithm": "multitask_finetune"}, RE: {"sources": ["personality_detection"]}}
    policy = parse_policy("named", "Friends", runs_file(tmp_path, **changes))
    with pytest.raises(ConfigError) as caught:
        choose(study, "Friends", "tiny-bert", policy, None)
    assert f"{QA}: the plan has no multitask_finetune from {RE}" in str(caught.value)
    assert f"{RE}: the plan has no multitask from personality_detection" in str(caught.value)


def test_a_named_seed_that_is_not_there(study: Study, tmp_path: Path) -> None:
    policy = parse_policy("named", "Friends", runs_file(tmp_path, **{QA: {"seed": 7}}))
    with pytest.raises(ConfigError, match=rf"{QA}: multitask has no run with seed 7.* 0, 1"):
        choose(study, "Friends", "tiny-bert", policy, None)


def test_a_named_seed_and_an_ensemble_contradict(study: Study, tmp_path: Path) -> None:
    wish = Wish("Friends", "tiny-bert", "named", runs_file(tmp_path), "mean")
    with pytest.raises(ConfigError, match="--ensemble takes all seeds"):
        make(study, wish, tmp_path / "a.zip")


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("best_dev", "did you mean 'best-dev'"),
        ("best-test", "known: best-dev, fixed:pretrain_finetune"),
        ("fixed:baseline", "no such policy"),
        ("fixed:multitsk", "did you mean 'fixed:multitask'"),
        ("named", "--runs FILE"),
        ("", "no such policy"),
    ],
)
def test_policies_that_are_none(policy: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_policy(policy, "Friends", None)
    assert told in str(caught.value)


def test_a_file_of_runs_with_another_policy(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--runs is for named"):
        parse_policy("best-dev", "Friends", runs_file(tmp_path))


# --- what is not there ---


def test_everything_that_is_missing_is_told_at_once(tmp_path: Path) -> None:
    tasks = {
        "Friends": {"tasks": [QA, RE, "reading_comprehension"], "sources": [QA], "targets": [RE]}
    }
    study = make_study(tmp_path, datasets=tasks)
    finish_all(study, dev, wanted=lambda run: run.algorithm != "baseline" or run.target == QA)
    with pytest.raises(ConfigError) as caught:
        picked(study)
    lines = str(caught.value).splitlines()
    assert "tiny-bert lacks 8" in lines[0]
    told = {line.split(":")[0].strip(): line for line in lines[1:]}
    assert set(told) == set(TASKS)
    assert "is not in the study" in told["personality_detection"]
    assert f"  {QA}: nothing is transferred to it" in str(caught.value)
    assert "  reading_comprehension: its baseline is not finished" in str(caught.value)
    assert f"  {RE}: its baseline is not finished" in str(caught.value)


def test_fixed_algorithms_that_the_study_lacks(study: Study) -> None:
    policy = parse_policy("fixed:multitask_finetune", "Friends", None)
    with pytest.raises(ConfigError, match=r"nothing is transferred to it by multitask_finetune"):
        choose(study, "Friends", "tiny-bert", policy, None)


def test_a_combination_takes_part_with_all_its_seeds_only(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    lacking = ("multitask", (RE,), QA, 0)
    finish_all(study, dev, wanted=lambda r: (r.algorithm, r.sources, r.target, r.seed) != lacking)
    chosen = choose(study, "Friends", "tiny-bert", Policy("best-dev"), None)
    qa = next(choice for choice in chosen.choices if choice.task == QA)
    assert qa.transfer.candidate.algorithm == "pretrain_finetune"
    assert {(r.algorithm, r.sources, r.target) for r in chosen.left_out} == {lacking[:3]}
    assert "note: 2 planned runs took no part" in make(study, Wish("Friends", "tiny-bert")).text


def test_no_transfer_run_is_finished(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    finish_all(study, dev, wanted=lambda run: run.algorithm == "baseline" or run.target != QA)
    with pytest.raises(ConfigError, match=rf"lacks 1:\n  {QA}: of 4 planned transfer runs none is"):
        picked(study)


def test_a_free_study_cannot_be_submitted(tmp_path: Path) -> None:
    study = make_study(tmp_path, rules="free")
    finish_all(study, dev)
    with pytest.raises(ConfigError, match="records of a free study cannot be submitted"):
        make(study, Wish("Friends", "tiny-bert"))
    # Nor can its records, though they keep the rules, once the config has changed its mind.
    under = make_study(tmp_path)
    for run in study.plan.runs:
        path = Path(study.record(run.scored))
        path.write_text(path.read_text().replace('"rules": "challenge"', '"rules": "free"'))
    with pytest.raises(TaskTransferError, match="made by a study under `rules: free`; delete it"):
        make(under, Wish("Friends", "tiny-bert"))


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        (Wish("friends", "tiny-bert"), "did you mean 'Friends'"),
        (Wish("DailyDialog", "tiny-bert"), "'DailyDialog' is no dataset of this study"),
        (Wish("Friends", "bert"), "no model is named 'bert'; named are tiny-bert"),
    ],
)
def test_names_that_the_study_does_not_have(study: Study, wish: Wish, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make(study, wish)
    assert told in str(caught.value)


def test_records_that_cannot_be_found(tmp_path: Path) -> None:
    study = make_study(tmp_path, data={"release": str(tmp_path / "nowhere")})
    with pytest.raises(ConfigError, match="where its records are cannot be told"):
        make(study, Wish("Friends", "tiny-bert"))


def test_the_constructed_answers_differ_between_runs(study: Study) -> None:
    """Otherwise equal archives would prove nothing."""
    task = get_task("Friends", QA)
    runs = [run for run in study.plan.runs if run.target == QA]
    assert len({tuple(by_seed(run, task)) for run in runs}) > 2
