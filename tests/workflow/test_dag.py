"""What Snakemake decides to run. Real Snakemake, real rules; the trainings only touch files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_record import fake_record

from releases import tiny_release
from tasktransfer.designs import open_study
from tasktransfer.errors import TaskTransferError

ROOT = Path(__file__).resolve().parents[2]
FAKE = Path(__file__).with_name("fake_tasktransfer")

A, B, C = "emotion_recognition", "dialogue_nli", "topic_classification"
MODEL = {"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny"}
OTHER = {"name": "tiny-gpt", "family": "decoder", "checkpoint": "tiny"}
SMALL: dict[str, Any] = {
    "study": "dag",
    "datasets": {"DailyDialog": {"tasks": [A, B]}},
    "models": [MODEL],
}
AUTO = {"mode": "auto", "targets_per_dataset": 1, "sources_per_target": 2}


@dataclass(frozen=True)
class Sandbox:
    """A working directory with a study and a fake ``tasktransfer`` on the PATH."""

    folder: Path

    def write(self, **keys: Any) -> None:
        (self.folder / "study.yaml").write_text(yaml.safe_dump(SMALL | keys))
        with chdir(self.folder), suppress(TaskTransferError):
            for stage in open_study("study.yaml").plan.stages:
                made = self.folder / "made" / stage.digest[:12]
                made.parent.mkdir(exist_ok=True)
                made.write_text(fake_record(stage))

    def call(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                *(sys.executable, "-m", "snakemake", *arguments),
                *("--workflow-profile", ROOT / "profiles" / "default", "--cores", "2"),
                # The profile's longer timespan would keep each call waiting at its end.
                *("--max-jobs-per-timespan", "100/1s"),
                # Last: it takes every word that follows for a file.
                *("--configfile", "study.yaml"),
                *(() if "--snakefile" in arguments else ("--snakefile", ROOT / "Snakefile")),
            ],
            cwd=self.folder,
            env=self.environment(**environment),
            capture_output=True,
            text=True,
            check=False,
        )

    def environment(self, **more: str) -> dict[str, str]:
        """What the fake ``tasktransfer`` is called and told."""
        return {
            **os.environ,
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "FAKE_LOG": str(self.folder / "asked.log"),
            "FAKE_RECORDS": str(self.folder / "made"),
            "FAKE_RECORD_MAKER": str(Path(__file__).with_name("fake_record.py")),
            **more,
        }

    def run(self, *arguments: str, **environment: str) -> Counter[str]:
        """Run to the end; what was trained, collected and picked, by kind."""
        log = self.folder / "asked.log"
        log.unlink(missing_ok=True)
        done = self.call(*arguments, **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        lines = log.read_text().splitlines() if log.exists() else []
        return Counter(line.split("/stages/")[-1].split("/")[0] for line in lines)

    def paths(self, kind: str, name: str) -> list[Path]:
        return sorted((self.folder / "results" / "stages" / kind).rglob(name))


def sandbox(folder: Path) -> Sandbox:
    (folder / "bin").mkdir(parents=True)
    shutil.copy2(FAKE, folder / "bin" / "tasktransfer")
    return Sandbox(folder)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small study, run once to the end."""
    made = sandbox(tmp_path_factory.mktemp("dag") / "finished")
    made.write()
    assert made.run() == {"baseline": 2, "multitask": 2, "finetune": 4, "collect": 1}
    return made.folder


@pytest.fixture
def study(finished: Path, tmp_path: Path) -> Iterator[Sandbox]:
    """A copy of the finished study, times of change included."""
    shutil.copytree(finished, tmp_path / "study", symlinks=True)
    made = Sandbox(tmp_path / "study")
    made.write()
    yield made


def touch_later(path: Path) -> None:
    """Change a file's time to well after everything else's."""
    now = path.stat().st_mtime + 100
    os.utime(path, (now, now))


def test_a_finished_study_has_everything_and_runs_nothing(study: Sandbox) -> None:
    assert len(study.paths("", "metrics.json")) == 8
    assert len(study.paths("baseline", "checkpoint")) == 2
    assert study.paths("multitask", "checkpoint") == []
    assert study.paths("finetune", "checkpoint") == []
    assert study.run() == {}
    assert "Nothing to be done" in study.call().stderr


def test_adding_a_seed_runs_its_trainings_only(study: Sandbox) -> None:
    study.write(seeds=2)
    assert study.run() == {"baseline": 2, "multitask": 2, "finetune": 4, "collect": 1}
    assert all("seed1-" in line for line in _trained(study))


def test_adding_a_task_runs_its_baseline_and_its_pairs_only(study: Sandbox) -> None:
    study.write(datasets={"DailyDialog": {"tasks": [A, B, C]}})
    assert study.run() == {"baseline": 1, "multitask": 4, "finetune": 8, "collect": 1}
    assert all("TC" in line for line in _trained(study))
    # The token ids that were there are of the old tasks.
    assert len([*(study.folder / "results/data/encoded").glob("*/*/manifest.json")]) == 2
    # On two cores two temporary checkpoints are waiting at most: what starts from one goes first.
    waiting, most = 0, 0
    for line in _trained(study):
        waiting += ("/multitask/" in line) - ("_from_" in line and "@" in line)
        most = max(most, waiting)
    assert most <= 2


def test_adding_a_model_runs_its_trainings_only(study: Sandbox) -> None:
    study.write(models=[MODEL, OTHER])
    assert study.run() == {"baseline": 2, "multitask": 2, "finetune": 4, "collect": 1}
    assert all("/tiny-gpt/" in line for line in _trained(study))


def test_adding_a_source_pair_runs_its_trainings_only(tmp_path: Path) -> None:
    def studied(*pairs: tuple[str, str]) -> dict[str, Any]:
        named = [{"source": source, "target": target} for source, target in pairs]
        return {"DailyDialog": {"tasks": [A, B, C], "pairs": named}}

    made = sandbox(tmp_path / "study")
    made.write(datasets=studied((A, B)))
    assert made.run() == {"baseline": 3, "multitask": 1, "finetune": 2, "collect": 1}
    before = _records(made)
    # Both baselines are there, and so is the checkpoint of the new pair's source.
    made.write(datasets=studied((A, B), (C, B)))
    assert made.run() == {"multitask": 1, "finetune": 2, "collect": 1}
    assert all("TC" in line and "DNLI" in line for line in _trained(made))
    assert before.items() <= _records(made).items()
    assert len(_records(made)) == 6 + 3


def test_adding_a_dataset_runs_its_trainings_only(study: Sandbox) -> None:
    friends = {"tasks": ["question_answering"]}
    study.write(datasets=SMALL["datasets"] | {"Friends": friends}, algorithms=["baseline"])
    assert study.run() == {"baseline": 1, "collect": 1}
    assert all("/Friends/" in line for line in _trained(study))


def test_asking_for_an_algorithm_whose_half_is_there_trains_nothing(study: Sandbox) -> None:
    study.write(algorithms=["multitask_finetune"], seeds=[7])
    assert study.run() == {"baseline": 2, "multitask": 2, "finetune": 2, "collect": 1}
    study.write(algorithms=["multitask", "multitask_finetune"], seeds=[7])
    assert study.run() == {"collect": 1}


def test_a_changed_hyperparameter_leaves_old_results_alone(study: Sandbox) -> None:
    before = _records(study)
    study.write(training={"learning_rate": 1e-4})
    assert study.run() == {"baseline": 2, "multitask": 2, "finetune": 4, "collect": 1}
    after = _records(study)
    assert before.items() <= after.items()
    assert (len(before), len(after)) == (8, 16)
    study.write()
    assert study.run() == {"collect": 1}
    assert _records(study) == after


def test_comments_and_documents_start_nothing(study: Sandbox) -> None:
    """A checkout whose every source file got a comment and is newer than all results."""
    copy = study.folder / "copy"
    copy.mkdir()
    for name in ("Snakefile", "README.md"):
        shutil.copy(ROOT / name, copy)
    for name in ("src", "workflow", "envs"):
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    touched = [path for path in copy.rglob("*") if path.suffix in (".py", ".smk", ".md", "")]
    for path in filter(Path.is_file, touched):
        path.write_text(path.read_text() + "\n# A comment.\n")
        touch_later(path)
    assert len(touched) > 50
    before = _records(study)
    snakefile = ("--snakefile", str(copy / "Snakefile"))
    assert study.run(*snakefile, PYTHONPATH=str(copy / "src")) == {}
    assert _records(study) == before


@pytest.mark.parametrize("kind", ["baseline", "finetune"])
def test_a_deleted_record_is_made_again_and_nothing_else(study: Sandbox, kind: str) -> None:
    record = next(p for p in study.paths(kind, "metrics.json") if "@" not in str(p))
    record.unlink()
    assert study.run() == {kind: 1, "collect": 1}
    assert record.exists()


@pytest.mark.parametrize("kind", ["baseline", "finetune"])
def test_a_damaged_record_is_trained_again_and_never_complete(study: Sandbox, kind: str) -> None:
    record = next(p for p in study.paths(kind, "metrics.json") if "@" not in str(p))
    content, ahead = record.read_text(), time.time() + 1000
    record.write_text(content[:500])
    os.utime(record, (ahead, ahead))  # by a clock that is ahead of ours
    stage = f"{kind}/DailyDialog/tiny-bert/{record.parts[-3]}/"
    for _ in range(2):  # as often as it fails
        done = study.call("--retries", "0", FAKE_FAIL=stage)
        assert done.returncode != 0
        assert f"{record.relative_to(study.folder)}: not valid JSON" in done.stderr
    assert record.read_text() == content[:500]  # setting aside is the trainer's
    assert study.run() == {kind: 1, "collect": 1}
    assert record.read_text() == content
    assert study.run() == {}


def test_tables_with_holes_are_collected_again(study: Sandbox) -> None:
    """Those of `figures_now` are newer than all records."""
    holes = study.folder / "results" / "logs" / "missing.log"
    holes.write_text("written by collect\n")
    assert study.run() == {"collect": 1}
    holes.unlink()
    assert study.run() == {}


def test_a_deleted_record_behind_a_temporary_checkpoint_costs_its_parent(study: Sandbox) -> None:
    record = next(p for p in study.paths("finetune", "metrics.json") if "@" in str(p))
    record.unlink()
    assert study.run() == {"multitask": 1, "finetune": 1, "collect": 1}
    assert study.paths("multitask", "checkpoint") == []


def test_caches_made_again_start_no_training(study: Sandbox) -> None:
    caches = [study.folder / "results" / "data", study.folder / "results" / "models"]
    for cache in caches:
        for path in [cache, *cache.rglob("*")]:
            touch_later(path)
    assert study.run() == {}
    for cache in caches:
        shutil.rmtree(cache)
    assert study.run() == {}


def test_parents_made_again_start_no_training(study: Sandbox) -> None:
    for path in study.paths("baseline", "checkpoint"):
        touch_later(path)
    assert study.run() == {}


def test_deleted_caches_are_made_again_for_new_trainings_only(study: Sandbox) -> None:
    shutil.rmtree(study.folder / "results" / "data")
    shutil.rmtree(study.folder / "results" / "models")
    study.write(seeds=2)
    assert study.run() == {"baseline": 2, "multitask": 2, "finetune": 4, "collect": 1}


def test_deleted_checkpoints_are_made_again_where_a_new_training_starts(study: Sandbox) -> None:
    for path in study.paths("baseline", "checkpoint"):
        shutil.rmtree(path)
    assert study.run() == {}
    study.write(datasets={"DailyDialog": {"tasks": [A, B, C]}})
    # Both old baselines and the new one, but no training that was finished and started from them.
    assert study.run() == {"baseline": 3, "multitask": 4, "finetune": 8, "collect": 1}


def test_tables_and_figures_come_from_records_alone(study: Sandbox) -> None:
    for folder in ("data", "models", "tables", "figures"):
        shutil.rmtree(study.folder / "results" / folder)
    shutil.rmtree(study.folder / ".snakemake")
    assert study.run("figures") == {"collect": 1}
    assert (study.folder / "results" / "report.html").exists()
    assert not (study.folder / "results" / "data").exists()


def test_triggers_that_would_repeat_trainings_are_refused(study: Sandbox) -> None:
    done = study.call("--rerun-triggers", "mtime", "params", "input")
    assert done.returncode != 0
    assert "use the profile in profiles/default" in done.stdout + done.stderr


def test_names_and_code_start_no_training(study: Sandbox) -> None:
    study.write(study="another name")
    assert study.run() == {"collect": 1}
    # A copy of the workflow with other shell commands: the trigger `code` is off.
    copy = study.folder / "copy"
    copy.mkdir()
    shutil.copy(ROOT / "Snakefile", copy)
    shutil.copytree(ROOT / "workflow", copy / "workflow")
    shutil.copytree(ROOT / "envs", copy / "envs")
    rules = copy / "workflow" / "rules" / "train.smk"
    rules.write_text(
        rules.read_text().replace('"tasktransfer train', '"true && tasktransfer train')
    )
    assert "true && tasktransfer" in rules.read_text()
    assert study.run("--snakefile", str(copy / "Snakefile")) == {}


def test_tables_follow_the_records(study: Sandbox) -> None:
    (study.folder / "results" / "tables" / "deltas.parquet").unlink()
    assert study.run() == {"collect": 1}


def test_kept_checkpoints_stay(study: Sandbox) -> None:
    study.write(checkpoints={"keep": "all"}, seeds=[9])
    study.run()
    for kind, count in (("baseline", 2), ("multitask", 2), ("finetune", 4)):
        assert len([p for p in study.paths(kind, "checkpoint") if "seed9" in str(p)]) == count


def test_one_failure_stops_what_depends_on_it_only(study: Sandbox) -> None:
    study.write(seeds=[3])
    done = study.call(FAKE_FAIL="baseline/DailyDialog/tiny-bert/ER/")
    assert done.returncode != 0
    assert "asked to fail" in done.stderr  # the job's log
    assert "Cannot restore" not in done.stderr
    made = [p for p in study.paths("", "metrics.json") if "seed3" in str(p)]
    assert len(made) == 8 - 2
    before = (study.folder / "results/tables/runs.parquet").stat().st_mtime_ns
    assert study.run("figures_now") == {"collect": 1}
    assert (study.folder / "results/tables/runs.parquet").stat().st_mtime_ns > before
    assert study.run() == {"baseline": 1, "finetune": 1, "collect": 1}


def test_a_pretraining_shared_by_targets_is_kept_for_a_later_one(tmp_path: Path) -> None:
    tasks = [A, B, C, "causal_emotion_entailment"]
    named = [{"dataset": "DailyDialog", "target": t, "sources": [A, B]} for t in tasks[2:]]
    keys: dict[str, Any] = {
        "datasets": {
            "DailyDialog": {"tasks": tasks, "pairs": [{"source": A, "target": B}]},
        },
        "algorithms": ["pretrain_finetune"],
    }
    made = sandbox(tmp_path / "study")
    made.write(**keys, multi_source={"mode": "named", "named": named[:1]})
    assert made.run() == {"baseline": 4, "pretrain": 1, "finetune": 2, "collect": 1}
    made.write(**keys, multi_source={"mode": "named", "named": named})
    assert made.run() == {"finetune": 1, "collect": 1}


def test_a_stopped_training_is_started_over(study: Sandbox) -> None:
    study.write(seeds=[4])
    assert study.call(FAKE_FAIL="finetune/DailyDialog/tiny-bert/DNLI_from_DNLI+ER").returncode != 0
    # Its temporary parent is still there, and is removed when it is done.
    assert len(study.paths("multitask", "checkpoint")) == 1
    assert study.run() == {"finetune": 1, "collect": 1}
    assert study.paths("multitask", "checkpoint") == []


def test_auto_picks_then_trains_and_then_rests(tmp_path: Path) -> None:
    made = sandbox(tmp_path / "study")
    made.write(datasets={"DailyDialog": {"tasks": [A, B, C]}}, multi_source=AUTO)
    picked = json.dumps([{"dataset": "DailyDialog", "target": C, "sources": [A, B]}])
    single = {"baseline": 3, "multitask": 6, "finetune": 12}
    several = {"pretrain": 1, "multitask": 1, "finetune": 2}
    assert made.run(FAKE_SELECTION=picked) == {
        **(Counter(single) + Counter(several)),
        "choose": 1,
        "collect": 1,
    }
    assert len(made.paths("", "metrics.json")) == 21 + 4
    assert made.run() == {}
    # The choice is pinned: results that are made again do not change it.
    made.paths("baseline", "metrics.json")[0].unlink()
    assert made.run() == {"baseline": 1, "collect": 1}
    made.write(datasets={"DailyDialog": {"tasks": [A, B, C]}}, multi_source=AUTO, seeds=2)
    assert made.run() == {**(Counter(single) + Counter(several)), "collect": 1}


def test_a_wrong_config_is_refused_before_anything_runs(study: Sandbox) -> None:
    study.write(training={"epochs": 0})
    done = study.call()
    assert done.returncode != 0
    assert "training.epochs: found 0" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_missing_release_is_refused(study: Sandbox) -> None:
    study.write(data={"release": "nowhere"})
    done = study.call()
    assert done.returncode != 0
    assert "nowhere" in done.stdout + done.stderr


def test_data_that_lacks_a_task_is_refused_before_anything_runs(tmp_path: Path) -> None:
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
    assert "did you mean 'seeds'" in done.stdout + done.stderr


def test_a_preset_is_a_whole_study(tmp_path: Path) -> None:
    """Nothing of config.yaml shines through: with the directive `configfile:` it would."""
    made = sandbox(tmp_path / "study")
    made.write()
    done = made.call("trainings", "--dry-run", "--quiet", "rules")
    assert done.returncode == 0, done.stderr
    counts = dict(line.split()[:2] for line in done.stdout.splitlines() if len(line.split()) == 2)
    assert counts["baseline"] == "2"


def _records(study: Sandbox) -> dict[str, int]:
    """Every record, with its time of change in nanoseconds."""
    return {str(p): p.stat().st_mtime_ns for p in study.paths("", "metrics.json")}


def _trained(study: Sandbox) -> list[str]:
    lines = (study.folder / "asked.log").read_text().splitlines()
    return [line for line in lines if "/stages/" in line]
