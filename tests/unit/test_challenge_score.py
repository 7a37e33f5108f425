"""The scorer: the four scores, which row answers what, and the toolkit's quirks."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from releases import tiny_release
from submissions import Files, files_of, golds_of, lines_of, packed, with_line, write_release
from tasktransfer import metrics
from tasktransfer.cli import main
from tasktransfer.core.specs import Fidelity
from tasktransfer.datasets import ALL_TASKS, DATASETS, get_task
from tasktransfer.designs.transfer.challenge.format import (
    BASELINE_FILE,
    FILES,
    INVALID,
    TRANSFER_FILE,
)
from tasktransfer.designs.transfer.challenge.golds import Golds
from tasktransfer.designs.transfer.challenge.read import Submission, read_submission
from tasktransfer.designs.transfer.challenge.score import Report, score_file, score_submission

EXAMPLE_VARIABLE = "TASKTRANSFER_TLIDB_EXAMPLE"
"""Names the folder tlidb/examples/example_friends_submission of a copy of the toolkit."""

EER = "emory_emotion_recognition/predictions.csv"
RE = "relation_extraction/predictions.csv"
QA = "question_answering/predictions.csv"
RE_ID = "d_Monica-Geller_Ross-Geller"


@pytest.fixture(scope="module", params=list(DATASETS))
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Golds]:
    """A tiny release of each dataset, and its test split."""
    data = write_release(tmp_path_factory.mktemp("release"), request.param)
    return data, golds_of(data, request.param)


@pytest.fixture(scope="module")
def friends(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Golds]:
    data = write_release(tmp_path_factory.mktemp("release"), "Friends")
    return data, golds_of(data, "Friends")


def zipped(folder: Path, files: Files, name: str = "submission.zip") -> Path:
    path = folder / name
    path.write_bytes(packed(files))
    return path


def read(folder: Path, files: Files, golds: Golds) -> Submission:
    return read_submission(zipped(folder, files), lambda _: golds)


def clumsy(task: str, file: str, instance: int, gold: tuple[str, ...]) -> tuple[str, ...]:
    """Wrong now and then, more often in the baseline; texts full of a CSV file's marks."""
    card = next(card for card in ALL_TASKS if card.name == task)
    every = 2 if file == BASELINE_FILE else 3
    if instance % every:
        return gold
    if card.kind == "span":
        return (f' "{gold[0]}", she said,\nand "left',)
    if card.kind == "multi_label":
        return card.labels[3:5]
    # What is no label is written as -1.
    return tuple("no label" if instance == 0 else card.labels[-1] for _ in gold)


@pytest.mark.parametrize("fidelity", ["default", "tlidb"])
def test_scores_are_those_of_the_metrics(
    fidelity: Fidelity, world: tuple[Path, Golds], tmp_path: Path
) -> None:
    data, golds = world
    archive = zipped(tmp_path, files_of(golds, clumsy))
    report = score_file(archive, data, fidelity=fidelity)
    assert (report.submission.findings.errors, report.submission.findings.warnings) == ([], [])
    assert report.submission.dataset == golds.dataset
    assert report.data_revision == golds.revision
    means = dict.fromkeys(FILES, 0.0)
    for name, task in golds.tasks.items():
        for file, found in (
            (BASELINE_FILE, report.tasks[name].baseline),
            (TRANSFER_FILE, report.tasks[name].transfer),
        ):
            predicted = [clumsy(name, file, n, gold) for n, gold in enumerate(task.answers)]
            one = [p[:1] if task.task.kind == "span" else p for p in predicted]
            values = metrics.evaluate(task.task, one, task.answers, fidelity=fidelity)
            assert found.metrics == pytest.approx(values, abs=1e-9)
            assert found.score == pytest.approx(metrics.score(task.task, values), abs=1e-9)
            means[file] += found.score / len(golds.tasks)
    assert report.scores is not None
    before, after = means[BASELINE_FILE], means[TRANSFER_FILE]
    assert before != after
    assert report.scores.as_json() == pytest.approx(
        {
            "baseline_score": before,
            "transfer_score": after,
            "score_delta": after - before,
            "submission_score": after - before + 0.1 * before,
        },
        abs=1e-9,
    )


def test_right_answers_score_100(world: tuple[Path, Golds], tmp_path: Path) -> None:
    data, golds = world
    report = score_file(zipped(tmp_path, files_of(golds)), data)
    assert report.scores is not None
    assert report.scores.as_json() == pytest.approx(
        {
            "baseline_score": 100.0,
            "transfer_score": 100.0,
            "score_delta": 0.0,
            "submission_score": 10.0,
        }
    )


@pytest.mark.parametrize("task", ["relation_extraction", "personality_detection"])
def test_the_second_row_with_an_id_answers_the_second_instance(
    task: str, friends: tuple[Path, Golds], tmp_path: Path
) -> None:
    """The release has these ids twice, with different right answers."""
    _, golds = friends
    here = golds.tasks[task]
    assert len(set(here.row_ids)) == len(here.row_ids) // 2
    assert here.answers[0] != here.answers[1]
    file = f"{task}/predictions.csv"
    files = files_of(golds)
    lines = lines_of(files, file)
    half = len(lines) // 2
    shuffled = files | {file: b"\n".join(lines[half:] + lines[:half])}
    kept, swapped = read(tmp_path, files, golds), read(tmp_path, shuffled, golds)
    assert kept.valid and swapped.valid
    first, second = kept.files[task][TRANSFER_FILE]
    assert swapped.files[task][TRANSFER_FILE] == [second, first]


def test_the_order_of_other_rows_does_not_matter(
    friends: tuple[Path, Golds], tmp_path: Path
) -> None:
    _, golds = friends
    files = files_of(golds, clumsy)
    turned = files | {EER: b"\n".join(reversed(lines_of(files, EER)))}
    assert read(tmp_path, files, golds).files == read(tmp_path, turned, golds).files


def test_minus_one_is_no_valid_answer(friends: tuple[Path, Golds], tmp_path: Path) -> None:
    _, golds = friends
    submission = read(tmp_path, with_line(files_of(golds), EER, 1, b"d_t2,-1"), golds)
    assert submission.valid and not submission.findings.warnings
    assert submission.files["emory_emotion_recognition"][TRANSFER_FILE][0] == (INVALID,)
    report = score_submission(submission, golds, "default")
    assert report.tasks["emory_emotion_recognition"].transfer.no_answers == 1
    assert report.tasks["emory_emotion_recognition"].transfer.metrics["micro_f1"] == 50.0


# --- quirks --------------------------------------------------------------------------------------

BITS = [1, 0, 1, *[0] * 34]
LABELS = get_task("Friends", "relation_extraction").labels

LISTS = {
    "integers": " ".join(str(bit) for bit in BITS).join("[]"),
    "floats, as the toolkit writes them": " ".join(f"{bit:.1f}" for bit in BITS).join("[]"),
    "floats, as NumPy prints them": " ".join(f"{bit}." for bit in BITS).join("[]"),
    "commas, in quotes": f'"[{", ".join(str(bit) for bit in BITS)}]"',
    "commas, no quotes": f"[{','.join(str(bit) for bit in BITS)}]",
    "no brackets": " ".join(str(bit) for bit in BITS),
    "columns": ",".join(str(bit) for bit in BITS),
    "many spaces": f" [ {'  '.join(str(bit) for bit in BITS)} ] ",
    "several lines in quotes": f'"[1 0 1\n{" ".join(["0"] * 34)}]"',
    "exponents": " ".join(f"{bit}.e+00" for bit in BITS).join("[]"),
}


@pytest.mark.parametrize("spelling", LISTS)
def test_lists_in_every_spelling(
    spelling: str, friends: tuple[Path, Golds], tmp_path: Path
) -> None:
    _, golds = friends
    line = f"{RE_ID},{LISTS[spelling]}".encode()
    submission = read(tmp_path, with_line(files_of(golds), RE, 1, line), golds)
    assert (submission.findings.errors, submission.findings.warnings) == ([], [])
    first = submission.files["relation_extraction"][TRANSFER_FILE][0]
    assert first == (LABELS[0], LABELS[2])


TEXTS = {
    # spelling: (line, what is read, the kind of warning)
    "commas replaced by spaces": (b"d_What,well  she is  new", "well  she is  new", None),
    "empty": (b"d_What,", "", None),
    "quotes inside": (b'd_What,he said " circle " twice', 'he said " circle " twice', None),
    "in quotes": (b'd_What,"new, ""red"" dinosaur"', 'new, "red" dinosaur', None),
    "both in quotes": (b'"d_What","new dinosaur"', "new dinosaur", None),
    "over two lines": (b'd_What,"new\ndinosaur"', "new\ndinosaur", None),
    "letters that are not English": ("d_What,Zoë’s".encode(), "Zoë’s", None),
    "commas outside quotes": (b"d_What,well, new", "well, new", "unquoted-comma"),
    "commas, then quotes": (b'd_What,well, "new"', 'well, "new"', "unquoted-comma"),
    "a quote that never ends": (b'd_What,"new dinosaur', '"new dinosaur', "stray-quote"),
    "text after a quote": (b'd_What,"new" dinosaur', '"new" dinosaur', "stray-quote"),
    "spaces around the id": (b" d_What ,dinosaur", "dinosaur", "id-spaces"),
}


@pytest.mark.parametrize("spelling", TEXTS)
def test_texts_in_every_spelling(
    spelling: str, friends: tuple[Path, Golds], tmp_path: Path
) -> None:
    _, golds = friends
    line, text, kind = TEXTS[spelling]
    submission = read(tmp_path, with_line(files_of(golds), QA, 1, line), golds)
    assert submission.findings.errors == []
    assert [(w.file, w.line, w.kind) for w in submission.findings.warnings] == (
        [(QA, 1, kind)] if kind else []
    )
    found = submission.files["question_answering"][TRANSFER_FILE]
    assert found[0] == (text,)
    assert found[1:] == [gold[:1] for gold in golds.tasks["question_answering"].answers[1:]]


FORMS: dict[str, tuple[Callable[[bytes], bytes], str | None]] = {
    "CRLF": (lambda data: data.replace(b"\n", b"\r\n"), None),
    "CR": (lambda data: data.replace(b"\n", b"\r"), None),
    "no last line end": (lambda data: data.removesuffix(b"\n"), None),
    "empty lines at the end": (lambda data: data + b"\n\n", None),
    "integers in quotes": (lambda data: data.replace(b",0", b',"0"'), None),
    "spaces around the number": (lambda data: data.replace(b",0", b", 0 "), None),
    "empty line between": (lambda data: data.replace(b"\n", b"\n\n", 1), "empty-line"),
    "byte order mark": (lambda data: b"\xef\xbb\xbf" + data, "bom"),
    "decimal points": (lambda data: data.replace(b",0", b",0.0"), "number-format"),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_a_file(form: str, friends: tuple[Path, Golds], tmp_path: Path) -> None:
    _, golds = friends
    change, kind = FORMS[form]
    files = files_of(golds)
    changed = change(files[EER])
    assert changed != files[EER]
    submission = read(tmp_path, files | {EER: changed}, golds)
    assert submission.findings.errors == []
    kinds = [warning.kind for warning in submission.findings.warnings]
    assert kinds == ([kind] if kind else [])
    assert submission.files == read(tmp_path, files, golds).files


# --- another version of the release --------------------------------------------------------------


def other_version(golds: Golds) -> Files:
    """An archive that lacks one mention and has one that this release lacks."""
    files = files_of(golds)
    for file in FILES:
        name = f"character_identification/{file}"
        lines = lines_of(files, name)
        files[name] = b"\n".join([*lines[1:], b"d_t9_mention0,2"])
    return files


def test_ids_of_another_version_are_errors(friends: tuple[Path, Golds], tmp_path: Path) -> None:
    _, golds = friends
    kinds = [error.kind for error in read(tmp_path, other_version(golds), golds).findings.errors]
    assert kinds == ["unknown-id", "missing-id"] * 2


def test_shared_ids_scores_what_both_have(friends: tuple[Path, Golds], tmp_path: Path) -> None:
    data, golds = friends
    archive = zipped(tmp_path, other_version(golds))
    report = score_file(archive, data, shared_ids=True)
    kinds = [warning.kind for warning in report.submission.findings.warnings]
    assert kinds == ["unknown-id", "missing-id"] * 2
    found = report.tasks["character_identification"]
    assert (found.scored, found.instances) == (3, 4)
    assert report.scores is not None
    assert report.scores.baseline == 100.0


def test_the_command_points_to_shared_ids(
    friends: tuple[Path, Golds], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, golds = friends
    archive = str(zipped(tmp_path, other_version(golds)))
    assert main(["score", archive, "--data", str(data)]) == 9
    assert "--shared-ids scores" in capsys.readouterr().err
    assert main(["score", archive, "--data", str(data), "--shared-ids"]) == 0
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


def test_the_command(
    world: tuple[Path, Golds], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, golds = world
    archive, out = zipped(tmp_path, files_of(golds, clumsy)), tmp_path / "report.json"
    assert main(["score", str(archive), "--data", str(data), "--json", str(out)]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    report: Report = score_file(archive, data)
    assert report.scores is not None
    assert f"submission score      {report.scores.submission:+9.4f}" in shown.out
    written = json.loads(out.read_text())
    assert written["valid"] is True
    assert written["errors"] == written["warnings"] == []
    assert written["scores"] == report.scores.as_json()
    assert set(written["tasks"]) == set(golds.tasks)


@pytest.mark.parametrize("mark", [{"synthetic": True}, {"synthetic": False}, {}])
def test_scores_on_generated_dialogues_say_so(
    mark: dict[str, bool], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = tiny_release("Friends")
    release.content["metadata"].update(mark)
    release.pack(tmp_path)
    archive = zipped(tmp_path, files_of(golds_of(tmp_path, "Friends"), clumsy))
    out = tmp_path / "report.json"
    assert main(["score", str(archive), "--data", str(tmp_path), "--json", str(out)]) == 0
    text, written = capsys.readouterr().out, json.loads(out.read_text())
    generated = mark.get("synthetic", False)
    assert text.startswith("SYNTHETIC: scored on generated dialogues") == generated
    assert written["synthetic"] is generated
    assert [note.split(":")[0] for note in written["notes"]] == ["SYNTHETIC"] * generated


def test_the_dataset_can_be_asked_for(
    world: tuple[Path, Golds], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, golds = world
    archive = zipped(tmp_path, files_of(golds))
    report = score_file(archive, data, dataset=golds.dataset)
    assert report.submission.valid
    assert main(["score", str(archive), "--data", str(data), "--dataset", "Seinfeld"]) == 3
    assert "the datasets are DailyDialog, Friends" in capsys.readouterr().err


def test_an_absent_release_is_told(
    friends: tuple[Path, Golds], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, golds = friends
    archive = zipped(tmp_path, files_of(golds))
    assert main(["score", str(archive), "--data", str(tmp_path / "nowhere")]) == 3
    assert "nowhere: does not exist" in capsys.readouterr().err


def test_the_toolkits_example(shared: Path) -> None:
    """Its mentions and queries are those of another copy of the release, so that some ids differ
    (``shared_ids``); everything else is read without a complaint."""
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
