"""The scorer: the four scores, other versions of the release, and the command."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from releases import tiny_release
from submissions import Files, files_of, lines_of, load_golds, packed, with_line, write_release
from tasktransfer import metrics
from tasktransfer.cli import main
from tasktransfer.core.fidelity import Scoring
from tasktransfer.datasets import ALL_TASKS, DATASETS
from tasktransfer.designs.challenge.format import BASELINE_FILE, FILES, TRANSFER_FILE
from tasktransfer.designs.challenge.golds import Golds
from tasktransfer.designs.challenge.parse import INVALID
from tasktransfer.designs.challenge.read import Submission, read_submission
from tasktransfer.designs.challenge.score import score_file, score_submission

EXAMPLE_VARIABLE = "TASKTRANSFER_TLIDB_EXAMPLE"
"""Names the folder tlidb/examples/example_friends_submission of a copy of the toolkit."""

EER = "emory_emotion_recognition/predictions.csv"


@pytest.fixture(scope="module", params=list(DATASETS))
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Golds]:
    """Write a tiny release of each dataset, and return its test split."""
    data = write_release(tmp_path_factory.mktemp("release"), request.param)
    return data, load_golds(data, request.param)


@pytest.fixture(scope="module")
def friends(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Golds]:
    data = write_release(tmp_path_factory.mktemp("release"), "Friends")
    return data, load_golds(data, "Friends")


def zipped(folder: Path, files: Files, name: str = "submission.zip") -> Path:
    path = folder / name
    path.write_bytes(packed(files))
    return path


def read(folder: Path, files: Files, golds: Golds) -> Submission:
    return read_submission(zipped(folder, files), lambda _: golds)


def clumsy(task: str, file: str, instance: int, gold: tuple[str, ...]) -> tuple[str, ...]:
    """Return answers with errors, more in the baseline, and texts full of CSV's special marks."""
    card = next(card for card in ALL_TASKS if card.name == task)
    every = 2 if file == BASELINE_FILE else 3
    if instance % every:
        return gold
    if card.kind == "span":
        return (f' "{gold[0]}", she said,\nand "left',)
    if card.kind == "multi_label":
        return card.labels[3:5]
    # Answers that are not labels are written as -1.
    return tuple("no label" if instance == 0 else card.labels[-1] for _ in gold)


@pytest.mark.parametrize("fidelity", ["default", "tlidb"])
def test_scores_are_those_of_the_metrics(
    fidelity: Scoring, world: tuple[Path, Golds], tmp_path: Path
) -> None:
    data, golds = world
    report = score_file(zipped(tmp_path, files_of(golds, clumsy)), data, fidelity=fidelity)
    assert (report.submission.findings.errors, report.submission.findings.warnings) == ([], [])
    assert (report.submission.dataset, report.data_revision) == (golds.dataset, golds.revision)
    means = dict.fromkeys(FILES, 0.0)
    for name, task in golds.tasks.items():
        both = (report.tasks[name].baseline, report.tasks[name].transfer)
        for file, score in zip(FILES, both, strict=True):
            predicted = [clumsy(name, file, n, gold) for n, gold in enumerate(task.answers)]
            one = [p[:1] if task.task.kind == "span" else p for p in predicted]
            values = metrics.evaluate_predictions(task.task, one, task.answers, fidelity=fidelity)
            assert score.metrics == pytest.approx(values, abs=1e-9)
            assert score.score == pytest.approx(
                metrics.compute_task_score(task.task, values), abs=1e-9
            )
            means[file] += score.score / len(golds.tasks)
    before, after = means[BASELINE_FILE], means[TRANSFER_FILE]
    assert before != after
    assert report.scores is not None
    assert tuple(report.scores.as_json().values()) == pytest.approx(
        (before, after, after - before, after - before + 0.1 * before), abs=1e-9
    )


def test_minus_one_is_no_valid_answer(friends: tuple[Path, Golds], tmp_path: Path) -> None:
    _, golds = friends
    submission = read(tmp_path, with_line(files_of(golds), EER, 1, b"d_t2,-1"), golds)
    assert submission.is_valid and not submission.findings.warnings
    assert submission.files["emory_emotion_recognition"][TRANSFER_FILE][0] == (INVALID,)
    report = score_submission(submission, golds, "default")
    assert report.tasks["emory_emotion_recognition"].transfer.no_answers == 1
    assert report.tasks["emory_emotion_recognition"].transfer.metrics["micro_f1"] == 50.0


# --- another version of the release --------------------------------------------------------------


def other_version(golds: Golds) -> Files:
    """Return an archive without one mention, and with one that this release does not have."""
    files = files_of(golds)
    for file in FILES:
        name = f"character_identification/{file}"
        lines = lines_of(files, name)
        files[name] = b"\n".join([*lines[1:], b"d_t9_mention0,2"])
    return files


def test_ids_of_another_version_are_errors_or_left_out(
    friends: tuple[Path, Golds], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, golds = friends
    archive = zipped(tmp_path, other_version(golds))
    kinds = ["unknown-id", "missing-id"] * 2
    assert [
        error.kind for error in read(tmp_path, other_version(golds), golds).findings.errors
    ] == kinds
    report = score_file(archive, data, shared_ids=True)
    assert [warning.kind for warning in report.submission.findings.warnings] == kinds
    task = report.tasks["character_identification"]
    assert (task.scored, task.instances, task.baseline.score) == (3, 4, 100.0)
    command = ["score", str(archive), "--data", str(data)]
    assert main(command) == 9
    assert "add --shared-ids" in capsys.readouterr().err
    assert main([*command, "--shared-ids"]) == 0
    shown = capsys.readouterr()
    assert "only 3 of 4 instances" in shown.out
    assert shown.err.count("warning: ") == 4


def test_nothing_shared_is_no_score(friends: tuple[Path, Golds], tmp_path: Path) -> None:
    data, golds = friends
    archive = zipped(tmp_path, files_of(golds) | {EER: b"z_t1,2\n"})
    report = score_file(archive, data, shared_ids=True)
    assert [error.kind for error in report.submission.findings.errors] == ["no-shared-id"]
    assert report.scores is None


# --- the command ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", [{"synthetic": True}, {"synthetic": False}, {}])
def test_scores_on_generated_dialogues_say_so(
    mark: dict[str, bool], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = tiny_release("Friends")
    release.content["metadata"].update(mark)
    release.pack(tmp_path)
    archive = zipped(tmp_path, files_of(load_golds(tmp_path, "Friends"), clumsy))
    out = tmp_path / "report.json"
    assert main(["score", str(archive), "--data", str(tmp_path), "--json", str(out)]) == 0
    text, written = capsys.readouterr().out, json.loads(out.read_text())
    generated = mark.get("synthetic", False)
    assert text.startswith("SYNTHETIC: The scores come from generated") == generated
    assert written["synthetic"] is generated
    assert [note.split(":")[0] for note in written["notes"]] == ["SYNTHETIC"] * generated


def test_unknown_datasets_and_absent_releases_are_reported(
    world: tuple[Path, Golds], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, golds = world
    archive = zipped(tmp_path, files_of(golds))
    assert score_file(archive, data, dataset=golds.dataset).submission.is_valid
    assert main(["score", str(archive), "--data", str(data), "--dataset", "Seinfeld"]) == 3
    assert "Choose one of DailyDialog, Friends" in capsys.readouterr().err
    assert main(["score", str(archive), "--data", str(tmp_path / "nowhere")]) == 3
    assert "nowhere: The path does not exist" in capsys.readouterr().err


def test_the_toolkits_example(shared: Path) -> None:
    """Its mentions and queries come from another copy of the release, so some ids differ.

    With ``shared_ids`` everything else is read without an error.
    """
    folder = os.environ.get(EXAMPLE_VARIABLE)
    if not folder:
        pytest.skip(
            f"set {EXAMPLE_VARIABLE} to the folder tlidb/examples/example_friends_submission of a "
            "copy of github.com/alon-albalak/TLiDB"
        )
    report = score_file(Path(folder), shared / "feta", shared_ids=True)
    findings = report.submission.findings
    assert findings.errors == []
    of_ids = {(warning.kind, warning.file.split("/")[0]) for warning in findings.warnings}
    assert of_ids == {
        ("extra-file", "sample_submission.zip"),
        ("unknown-id", "reading_comprehension"),
        ("unknown-id", "character_identification"),
        ("missing-id", "character_identification"),
    }
    assert report.scores is not None
    scored = {name: task.scored for name, task in report.tasks.items()}
    assert scored["question_answering"] == 1937
    assert scored["relation_extraction"] == 1131
    assert scored["character_identification"] == 6740
    assert report.tasks["question_answering"].transfer.score == pytest.approx(21.94, abs=0.005)
    assert report.tasks["relation_extraction"].transfer.score == pytest.approx(25.56, abs=0.005)
