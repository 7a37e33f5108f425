"""A matrix shared by three labs without a server, and runs in the schema of Every Eval Ever."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import finished_stages
from finished_stages import MODEL, finish, opened
from study_records import TEST_SIZE
from tasktransfer import cli, metrics
from tasktransfer.core.nodes import Stage
from tasktransfer.errors import ConfigError
from tasktransfer.operate import coded_answers
from tasktransfer.operate.commons.every_eval_ever import make_slug
from tasktransfer.operate.commons.isolated import PackReader
from tasktransfer.operate.commons.shards import find_shards
from tasktransfer.results.records import read_record
from tasktransfer.results.rows import Row
from tasktransfer.results.schema import TaskResult
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import Task
from validated_exports import validated

SEEDS = {"Lab A": 1, "Lab B": 2, "Lab C": 3}
SHARDS = Path("shards")
LABELS = ["emotion_recognition", "topic_classification"]
STUDY: dict[str, Any] = {
    "datasets": {"DailyDialog": {"tasks": LABELS}},
    "seeds": [*SEEDS.values()],
    "algorithms": ["baseline", "pretrain_finetune"],
}


pytestmark = pytest.mark.usefixtures("here")


def lab(name: str, **finished: Any) -> Study:
    """Return a lab's results folder with the trainings of its seed.

    Lab C uses another name for the model, which does not affect identities.
    """
    folder = name.lower().replace(" ", "-")
    models = [{**MODEL, "name": "my-bert"}] if name == "Lab C" else [MODEL]
    study = opened(f"{folder}.yaml", results=folder, models=models, **STUDY)
    for stage in study.plan.stages:
        if stage.seed == SEEDS[name]:
            finish(study, stage, measured=True, **finished)
    return study


def pack(name: str) -> Path:
    """Write the lab's shard."""
    folder = name.lower().replace(" ", "-")
    out = SHARDS / f"{folder}.parquet"
    assert cli.main(["pack", "--config", f"{folder}.yaml", "--out", str(out), "--by", name]) == 0
    return out


@pytest.fixture
def shards() -> Path:
    for name in SEEDS:
        lab(name)
        pack(name)
    opened(results="all", **STUDY)
    return SHARDS


def imported(capsys: pytest.CaptureFixture[str], *options: str, code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    words = ["import", str(SHARDS), "--config", "study.yaml", "--json", *options]
    assert cli.main(words) == code
    seen: dict[str, Any] = json.loads(capsys.readouterr().out)
    return seen


def test_three_labs_share_a_matrix(shards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen = imported(capsys, "--figures")
    assert {by: (made["seeds"], made["nodes"]) for by, made in seen["by"].items()} == {
        name: ([seed], {"stage": 4}) for name, seed in SEEDS.items()
    }
    assert [shard["counts"]["copied"] for shard in seen["shards"]] == [4, 4, 4]
    assert seen["lacking"] == 0
    assert Path("all/figures/heatmap_DailyDialog.png").stat().st_size > 10_000
    page = Path("all/report.html").read_text()
    assert "contributed by Lab A (4 records), Lab B (4 records), Lab C (4 records)" in page
    records = [read_record(path) for path in Path("all").rglob("metrics.json")]
    assert {record["provenance"]["made_by"] for record in records} == {*SEEDS}
    again = imported(capsys)
    assert [shard["counts"]["identical"] for shard in again["shards"]] == [4, 4, 4]


def test_a_damaged_shard_is_left_out_and_named(
    shards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A changed score, a missing record, and a file that is not a shard."""
    spoil(shards / "lab-b.parquet", lambda rows: rows[0]["rows"][0].update(score=99.0))
    (shards / "lab-c.parquet").write_text("no Parquet")
    seen = imported(capsys, "--dry-run", code=6)
    assert [bool(shard["problem"]) for shard in seen["shards"]] == [False, True, True]
    assert "does not match the pack" in seen["shards"][1]["problem"]
    assert not list(Path("all").rglob("metrics.json"))
    assert cli.main(["import", str(SHARDS), "--config", "study.yaml"]) == 6
    printed = capsys.readouterr()
    assert "Lab A: 4 trainings; models tiny-bert; seeds 1" in printed.out
    assert "lab-b.parquet, shards/lab-c.parquet: Nothing was copied" in printed.err
    assert len(list(Path("all").rglob("metrics.json"))) == 4
    spoil(shards / "lab-a.parquet", lambda rows: rows.pop())
    assert "was packed but is missing" in imported(capsys, code=6)["shards"][0]["problem"]


def spoil(file: Path, change: Any) -> None:
    """Change the rows of a pack, and keep its footer."""
    table = pq.read_table(file)
    rows = table.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), file)


def test_what_is_here_stays_and_other_numbers_are_named(
    shards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported(capsys)
    before = {path: path.read_bytes() for path in Path("all").rglob("metrics.json")}
    study = lab("Lab A")
    for stage in study.plan.stages:
        if stage.seed == SEEDS["Lab A"]:
            Path(study.get_record_path(stage)).unlink()
            finish(study, stage)  # not measured: other rows and scores
    assert cli.main(["pack", "--config", "lab-a.yaml", "--out", "shards/z.parquet"]) == 6
    words = ["--with-text", "--by", "Lab A again"]
    assert cli.main(["pack", "--config", "lab-a.yaml", "--out", "shards/z.parquet", *words]) == 0
    seen = imported(capsys, code=6)
    assert seen["shards"][-1]["counts"]["conflict"] == 4
    assert "results." in seen["shards"][-1]["reasons"][0]
    assert seen["by"].keys() == SEEDS.keys()
    assert {path: path.read_bytes() for path in before} == before


def test_shards_made_on_other_data_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    other = opened("other.yaml", results="other", data={"tiny_world": {"seed": 7}}, **STUDY)
    for stage in other.plan.stages:
        finish(other, stage, measured=True)
    assert cli.main(["pack", "--config", "other.yaml", "--out", "shards/o.parquet"]) == 0
    ours = opened(results="all", **STUDY)
    (shard,) = (seen := imported(capsys))["shards"]
    assert shard["inputs"] == ["DailyDialog", "tiny-bert"]
    assert (shard["elsewhere"], shard["by"], shard["made"]) == (12, "unnamed", {})
    assert (seen["by"], seen["lacking"]) == ({}, len(ours.plan.nodes))


def test_a_checkout_tells_its_commit(shards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def git(*words: str) -> str:
        command = ["git", "-C", str(shards), "-c", "user.name=Ada", "-c", "user.email=a@b.c"]
        return subprocess.run(
            [*command, *words], check=True, capture_output=True, text=True
        ).stdout.strip()

    assert imported(capsys, "--dry-run")["commit"] == ""
    git("init")
    assert imported(capsys, "--dry-run")["commit"] == ""
    git("add", ".")
    git("commit", "-m", "shards")
    commit = git("rev-parse", "HEAD")
    assert imported(capsys, "--dry-run")["commit"] == commit
    git("pack-refs", "--all")
    assert imported(capsys, "--dry-run")["commit"] == commit
    git("checkout", "--detach")
    assert imported(capsys, "--dry-run")["commit"] == commit
    assert cli.main(["import", str(shards), "--config", "study.yaml", "--dry-run"]) == 0
    assert f"3 shards, commit {commit[:12]} -> all" in capsys.readouterr().out


def test_no_shards(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"The path is not a folder\. Clone the repository"):
        find_shards(tmp_path / "none", PackReader())
    with pytest.raises(ConfigError, match=r"contains no shard.*pack --by"):
        find_shards(tmp_path, PackReader())


# --- Every Eval Ever ----------------------------------------------------------------------------


def exported(study: Study, *options: str) -> list[Path]:
    words = ["export", "--eee", "--config", study.config_file, "--out", "eee", "--by", "Lab A"]
    assert cli.main([*words, *options]) == 0
    return sorted(path for path in Path("eee").rglob("*") if path.is_file())


def test_an_export_says_the_same_as_the_records(capsys: pytest.CaptureFixture[str]) -> None:
    study = lab("Lab A")
    files = exported(study)
    assert "4 runs" in capsys.readouterr().out
    assert validated(Path("eee"))[0] == 0
    before = [file.read_bytes() for file in files]
    assert [file.read_bytes() for file in exported(study)] == before
    capsys.readouterr()
    records = {stage.digest[:12]: stage for stage in study.plan.stages if stage.seed == 1}
    for file in (path for path in files if path.suffix == ".json"):
        log = json.loads(file.read_text())
        detail = log["detailed_evaluation_results"]
        lines = [*map(json.loads, Path("eee", detail["file_path"]).read_text().splitlines())]
        assert len(lines) == detail["total_rows"] > 0
        for result in log["evaluation_results"]:
            digest, task, split, measure = result["evaluation_result_id"].split("/")
            in_record = read_record(Path(study.get_record_path(records[digest])))["results"][task]
            value = {**in_record["measures"], "score": in_record["score"]}[measure]
            assert (result["score_details"]["score"], split) == (value, "test")
        assert log["model_info"]["id"].startswith("Lab-A/tiny-bert-")
        scores = [line["evaluation"]["score"] for line in lines]
        assert [line["evaluation"]["is_correct"] for line in lines] == [s == 100 for s in scores]
        assert all("not passed on" in line["input"]["raw"] for line in lines)
        log["evaluation_results"][0]["score_details"]["score"] = 101.0
        file.write_text(json.dumps(log))
    assert validated(Path("eee"))[0] == 1


def spoken(stage: Stage, task: Task) -> tuple[list[Row], TaskResult]:
    """Return answers of a model that quotes its input."""
    words = [("a secret sentence",), ("another secret",)] * (TEST_SIZE // 2)
    golds = words if task.kind == "span" else [(task.labels[0],)] * TEST_SIZE
    answers = [words[0]] * TEST_SIZE
    each = metrics.score_instances(task, answers, golds)
    rows = [Row(i, task.name, f"i{i}", answers[i], golds[i], each[i]) for i in range(TEST_SIZE)]
    values = metrics.evaluate_predictions(task, answers, golds)
    return rows, {
        "measures": values,
        "score": metrics.compute_task_score(task, values),
        "instances": TEST_SIZE,
    }


@pytest.mark.parametrize(
    ("task", "alike"),
    [("causal_emotion_span_extraction", True), ("dialogue_nli", True), ("dialogue_nli", False)],
)
def test_no_words_of_a_dialogue_are_exported(
    task: str, alike: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spans, and texts that are not labels, are coded.

    If codes would not give the same score, instances are not written at all.
    """
    monkeypatch.setattr(finished_stages, "tested", spoken)
    if not alike:
        monkeypatch.setattr(coded_answers, "_is_equivalent", lambda *_: False)
    datasets = {"DailyDialog": {"tasks": [task]}}
    study = opened("spans.yaml", results="spans", datasets=datasets, algorithms=["baseline"])
    for stage in study.plan.stages:
        finish(study, stage, measured=True)
    files = exported(study)
    assert validated(Path("eee"))[0] == 0
    texts = "".join(file.read_text() for file in files)
    assert "secret" not in texts
    assert ('"w1 w2"' in texts) == alike
    assert any(file.suffix == ".jsonl" for file in files) == alike
    assert "secret" in "".join(file.read_text() for file in exported(study, "--with-text"))


def test_names_of_folders() -> None:
    assert make_slug("Lab A / Groningen") == "Lab-A-Groningen"
    slugs = [make_slug(name) for name in ("data", "../..", "ü")]
    assert slugs == ["data-results", "unnamed", "unnamed"]
    assert len(make_slug("x" * 999)) == 120
