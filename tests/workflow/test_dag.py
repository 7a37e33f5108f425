"""Jobs that Snakemake runs when a study grows or changes.

Snakemake and the rules are real; the trainings only touch files.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from dag_study import MODEL, OTHER, SMALL, A, B, C, Sandbox, records, sandbox, trained

from releases import tiny_release

AUTO = {"mode": "auto", "targets_per_dataset": 1, "sources_per_target": 2}


def test_a_finished_study_has_everything_and_runs_nothing(study: Sandbox) -> None:
    assert len(study.paths("", "metrics.json")) == 7
    assert len(study.paths("baseline", "checkpoint")) == 2
    assert study.paths("multitask", "checkpoint") == []
    assert study.paths("finetune", "checkpoint") == []
    assert study.run() == {}
    assert "Nothing to be done" in study.call().stderr


@pytest.mark.skipif(sys.platform != "linux", reason="hosts are for Linux")
def test_trainings_know_the_workflow_whose_host_they_share(study: Sandbox) -> None:
    logs = [path.read_text() for path in study.paths("", "train.log")]
    assert len(logs) == 7
    assert all("snakemake" in log for log in logs), logs
    study.write(seeds=2)
    study.run(TASKTRANSFER_WORKFLOW="off")
    without = [path for path in study.paths("", "train.log") if "seed1-" in str(path)]
    assert len(without) == 7
    assert not any("snakemake" in path.read_text() for path in without)


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        ({"seeds": 2}, "seed1-"),
        pytest.param({"models": [MODEL, OTHER]}, "/tiny-gpt/", marks=pytest.mark.slow),
    ],
)
def test_adding_a_seed_or_a_model_runs_its_trainings_only(
    study: Sandbox, keys: dict[str, Any], part: str
) -> None:
    study.write(**keys)
    assert study.run() == {"baseline": 2, "multitask": 1, "finetune": 4, "collect": 1}
    assert all(part in line for line in trained(study))


@pytest.mark.parametrize(
    "keys", [{"algorithms": []}, pytest.param({"pairs": []}, marks=pytest.mark.slow)]
)
def test_baselines_alone_are_a_study(keys: dict[str, list[str]], tmp_path: Path) -> None:
    study = sandbox(tmp_path)
    study.write(**keys)
    assert study.run() == {"baseline": 2, "collect": 1}
    assert "Nothing to be done" in study.call().stderr


def test_adding_a_task_runs_its_baseline_and_its_pairs_only(study: Sandbox) -> None:
    study.write(datasets={"DailyDialog": {"tasks": [A, B, C]}})
    assert study.run() == {"baseline": 1, "multitask": 2, "finetune": 8, "collect": 1}
    assert all("TC" in line for line in trained(study))
    # The existing token ids belong to the old tasks.
    assert len([*(study.folder / "results/data/encoded").glob("*/*/manifest.json")]) == 2
    # On two cores at most two temporary checkpoints wait, since their dependents have priority.
    waiting, most = 0, 0
    for line in trained(study):
        waiting += ("/multitask/" in line) - ("_from_" in line and "@" in line)
        most = max(most, waiting)
    assert most <= 2


@pytest.mark.slow
def test_adding_a_source_pair_runs_its_trainings_only(tmp_path: Path) -> None:
    def studied(*pairs: tuple[str, str]) -> dict[str, Any]:
        named = [{"source": source, "target": target} for source, target in pairs]
        return {"DailyDialog": {"tasks": [A, B, C], "pairs": named}}

    made = sandbox(tmp_path / "study")
    made.write(datasets=studied((A, B)))
    assert made.run() == {"baseline": 3, "multitask": 1, "finetune": 2, "collect": 1}
    before = records(made)
    # Both baselines exist, and so does the checkpoint of the new pair's source.
    made.write(datasets=studied((A, B), (C, B)))
    assert made.run() == {"multitask": 1, "finetune": 2, "collect": 1}
    assert all("TC" in line and "DNLI" in line for line in trained(made))
    assert before.items() <= records(made).items()
    assert len(records(made)) == 6 + 3


@pytest.mark.slow
def test_adding_a_dataset_runs_its_trainings_only(study: Sandbox) -> None:
    friends = {"tasks": ["question_answering"]}
    study.write(datasets=SMALL["datasets"] | {"Friends": friends}, algorithms=["baseline"])
    assert study.run() == {"baseline": 1, "collect": 1}
    assert all("/Friends/" in line for line in trained(study))


def test_asking_for_an_algorithm_whose_half_is_there_trains_nothing(study: Sandbox) -> None:
    study.write(algorithms=["multitask_finetune"], seeds=[7])
    assert study.run() == {"baseline": 2, "multitask": 1, "finetune": 2, "collect": 1}
    study.write(algorithms=["multitask", "multitask_finetune"], seeds=[7])
    assert study.run() == {"collect": 1}


def test_a_changed_hyperparameter_leaves_old_results_alone(study: Sandbox) -> None:
    before = records(study)
    study.write(training={"learning_rate": 1e-4})
    assert study.run() == {"baseline": 2, "multitask": 1, "finetune": 4, "collect": 1}
    after = records(study)
    assert before.items() <= after.items()
    assert (len(before), len(after)) == (7, 14)
    study.write()
    assert study.run() == {"collect": 1}
    assert records(study) == after


def test_kept_checkpoints_stay(study: Sandbox) -> None:
    study.write(checkpoints={"keep": "all"}, seeds=[9])
    study.run()
    for kind, count in (("baseline", 2), ("multitask", 1), ("finetune", 4)):
        assert len([p for p in study.paths(kind, "checkpoint") if "seed9" in str(p)]) == count


@pytest.mark.parametrize("kept", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_pretraining_shared_by_targets_is_kept_for_a_later_one(
    tmp_path: Path, kept: bool
) -> None:
    tasks = [A, B, C, "causal_emotion_entailment"]
    named = [{"dataset": "DailyDialog", "target": t, "sources": [A, B]} for t in tasks[2:]]
    keys: dict[str, Any] = {
        "datasets": {"DailyDialog": {"tasks": tasks, "pairs": [{"source": A, "target": B}]}},
        "algorithms": ["pretrain_finetune"],
        "checkpoints": {"keep": ["baseline", *(["multitask"] if kept else [])]},
    }
    made = sandbox(tmp_path / "study")
    made.write(**keys, multi_source={"mode": "named", "named": named[:1]})
    assert made.run() == {"baseline": 4, "multitask": 1, "finetune": 2, "collect": 1}
    made.write(**keys, multi_source={"mode": "named", "named": named})
    again = {} if kept else {"multitask": 1}
    assert made.run() == {**again, "finetune": 1, "collect": 1}


def test_auto_picks_then_trains_and_then_rests(tmp_path: Path) -> None:
    made = sandbox(tmp_path / "study")
    made.write(datasets={"DailyDialog": {"tasks": [A, B, C]}}, multi_source=AUTO)
    picked = json.dumps([{"dataset": "DailyDialog", "target": C, "sources": [A, B]}])
    single = {"baseline": 3, "multitask": 3, "finetune": 12}
    # The pair of sources is already trained, and has kept the round that is best on both.
    several = {"multitask": 1, "finetune": 2}
    assert made.run(FAKE_SELECTION=picked) == {
        **(Counter(single) + Counter(several)),
        "choose": 1,
        "collect": 1,
    }
    assert len(made.paths("", "metrics.json")) == 18 + 3
    assert made.run() == {}
    # The choice is pinned: recomputed results do not change it.
    made.paths("baseline", "metrics.json")[0].unlink()
    assert made.run() == {"baseline": 1, "collect": 1}
    made.write(datasets={"DailyDialog": {"tasks": [A, B, C]}}, multi_source=AUTO, seeds=2)
    assert made.run() == {**(Counter(single) + Counter(several)), "collect": 1}


def test_a_missing_release_is_refused(study: Sandbox) -> None:
    study.write(data={"release": "nowhere"})
    done = study.call()
    assert done.returncode != 0
    assert "nowhere" in done.stdout + done.stderr


def test_data_without_a_task_is_refused_before_anything_runs(tmp_path: Path) -> None:
    made, release = sandbox(tmp_path / "study"), tiny_release("DailyDialog")
    release.content["metadata"]["tasks"].remove(B)
    release.write(made.folder)
    made.write(data={"release": "."})
    done = made.call("--dry-run")
    assert done.returncode != 0
    assert f"metadata.tasks does not list '{B}'" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    made.write(data={"release": "."}, datasets={"DailyDialog": {"tasks": [A, C]}})
    assert made.call("--dry-run").returncode == 0


def test_overrides_are_laid_over_the_file_and_reach_the_commands(study: Sandbox) -> None:
    assert study.run("--config", "seeds=2")["baseline"] == 2
    done = study.call("--config", "sedes=2")
    assert "Did you mean 'seeds'" in done.stdout + done.stderr


def test_a_preset_is_a_whole_study(tmp_path: Path) -> None:
    """No value of config.yaml is merged in, as the directive `configfile:` would do."""
    made = sandbox(tmp_path / "study")
    made.write()
    done = made.call("trainings", "--dry-run", "--quiet", "rules")
    assert done.returncode == 0, done.stderr
    counts = dict(line.split()[:2] for line in done.stdout.splitlines() if len(line.split()) == 2)
    assert counts["baseline"] == "2"
