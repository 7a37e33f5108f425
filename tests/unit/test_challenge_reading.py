"""Reading of submissions: all kinds of errors with file and line, and the toolkit's formats."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from damaged_archives import DAMAGES, EER, FILE_LIMIT, PD, QA, TOTAL_LIMIT
from submissions import Files, files_of, lines_of, load_golds, packed, with_line, write_release
from tasktransfer.cli import main
from tasktransfer.datasets import get_task
from tasktransfer.designs.challenge import files as challenge_files
from tasktransfer.designs.challenge.format import TRANSFER_FILE
from tasktransfer.designs.challenge.golds import Golds
from tasktransfer.designs.challenge.read import Submission, read_submission

LISTS_FILE = "relation_extraction/predictions.csv"


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"file": FILE_LIMIT, "total": TOTAL_LIMIT, "archive": TOTAL_LIMIT}
    monkeypatch.setattr(challenge_files, "LIMITS", replace(challenge_files.LIMITS, **small))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_release(tmp_path_factory.mktemp("release"), "Friends")


@pytest.fixture(scope="module")
def golds(data: Path) -> Golds:
    return load_golds(data, "Friends")


@pytest.fixture
def read(golds: Golds, tmp_path: Path) -> Callable[[Files | bytes | Path], Submission]:
    def read(content: Files | bytes | Path) -> Submission:
        path = tmp_path / "submission.zip"
        if isinstance(content, Path):
            path = content
        else:
            path.write_bytes(content if isinstance(content, bytes) else packed(content))
        return read_submission(path, lambda _: golds)

    return read


Read = Callable[[Files | bytes | Path], Submission]


# --- damages -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DAMAGES)
def test_each_damage_has_its_own_error(name: str, golds: Golds, read: Read, tmp_path: Path) -> None:
    damage = DAMAGES[name]
    errors = read(damage.make(files_of(golds))).findings.errors
    of_kind = [error for error in errors if error.kind == damage.kind]
    assert [(error.file, error.line) for error in of_kind] == [(damage.file, damage.line)], errors
    assert damage.says in of_kind[0].text
    place = f"{damage.file}:{damage.line}: " if damage.line else damage.file
    assert str(of_kind[0]).startswith(place)
    assert [path.name for path in tmp_path.iterdir()] == ["submission.zip"], "nothing is unpacked"


def test_a_faulty_line_is_one_error_and_not_a_missing_id_too(golds: Golds, read: Read) -> None:
    damaged = with_line(files_of(golds), QA, 1, b"d_What,\xff")
    assert len(read(damaged).findings.errors) == 1


def test_few_are_printed_and_all_are_in_the_report(
    data: Path, golds: Golds, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = files_of(golds)
    lines = [line.split(b",")[0] + b",9" for line in lines_of(files, PD)]
    files[PD] = b"\n".join([*lines, *lines])
    archive, report = tmp_path / "submission.zip", tmp_path / "report.json"
    archive.write_bytes(packed(files))
    assert main(["score", str(archive), "--data", str(data), "--json", str(report)]) == 9
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "submission.zip: The submission is invalid and has 30 errors" in shown.err
    assert f"  {PD}: ... and 20 more (10 out-of-range, 10 duplicate-id)" in shown.err
    assert len(shown.err.splitlines()) == 12
    assert report.read_text().count('"kind"') == 30


# --- accepted input ------------------------------------------------------------------------------

BITS = [1, 0, 1, *[0] * 34]
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
def test_lists_in_every_spelling(spelling: str, golds: Golds, read: Read) -> None:
    line = f"d_Monica-Geller_Ross-Geller,{LISTS[spelling]}".encode()
    submission = read(with_line(files_of(golds), LISTS_FILE, 1, line))
    assert (submission.findings.errors, submission.findings.warnings) == ([], [])
    labels = get_task("Friends", "relation_extraction").labels
    assert submission.files["relation_extraction"][TRANSFER_FILE][0] == (labels[0], labels[2])


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
def test_texts_in_every_spelling(spelling: str, golds: Golds, read: Read) -> None:
    line, text, kind = TEXTS[spelling]
    submission = read(with_line(files_of(golds), QA, 1, line))
    assert submission.findings.errors == []
    warnings = [(w.file, w.line, w.kind) for w in submission.findings.warnings]
    assert warnings == ([(QA, 1, kind)] if kind else [])
    others = [gold[:1] for gold in golds.tasks["question_answering"].answers[1:]]
    assert submission.files["question_answering"][TRANSFER_FILE] == [(text,), *others]


def test_a_line_that_begins_with_an_id_ends_a_text_in_quotes(golds: Golds, read: Read) -> None:
    files = with_line(files_of(golds), QA, 1, b'd_What,"new')
    submission = read(with_line(files, QA, 2, b'd_Who,dinosaur"'))
    assert [(w.kind, w.line) for w in submission.findings.warnings] == [("stray-quote", 1)]
    answers = submission.files["question_answering"][TRANSFER_FILE]
    assert answers[:2] == [('"new',), ('dinosaur"',)]


FORMS: dict[str, tuple[Callable[[bytes], bytes], str | None]] = {
    "CRLF": (lambda data: data.replace(b"\n", b"\r\n"), None),
    "CR": (lambda data: data.replace(b"\n", b"\r"), None),
    "no last line end": (lambda data: data.removesuffix(b"\n"), None),
    "empty lines at the end": (lambda data: data + b"\n\n", None),
    "integers in quotes": (lambda data: data.replace(b",0", b',"0"'), None),
    "spaces around the number": (lambda data: data.replace(b",0", b", 0 "), None),
    "another order": (lambda data: b"\n".join(data.split(b"\n")[-2::-1]), None),
    "empty line between": (lambda data: data.replace(b"\n", b"\n\n", 1), "empty-line"),
    "byte order mark": (lambda data: b"\xef\xbb\xbf" + data, "bom"),
    "decimal points": (lambda data: data.replace(b",0", b",0.0"), "number-format"),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_a_file(form: str, golds: Golds, read: Read) -> None:
    change, kind = FORMS[form]
    files = files_of(golds)
    changed = change(files[EER])
    assert changed != files[EER]
    submission = read(files | {EER: changed})
    assert submission.findings.errors == []
    assert [w.kind for w in submission.findings.warnings] == ([kind] if kind else [])
    assert submission.files == read(files).files


@pytest.mark.parametrize("task", ["relation_extraction", "personality_detection"])
def test_the_second_row_with_an_id_answers_the_second_instance(
    task: str, golds: Golds, read: Read
) -> None:
    """The release has these ids twice, with different gold answers."""
    answers, row_ids = golds.tasks[task].answers, golds.tasks[task].row_ids
    assert len(set(row_ids)) == len(row_ids) // 2 and answers[0] != answers[1]
    file, files = f"{task}/predictions.csv", files_of(golds)
    lines = lines_of(files, file)
    half = len(lines) // 2
    kept = read(files)
    pairs = zip(lines[half:], lines[:half], strict=True)
    swapped = read(files | {file: b"\n".join(line for pair in pairs for line in pair)})
    assert kept.is_valid and swapped.is_valid
    assert swapped.files[task][TRANSFER_FILE] == kept.files[task][TRANSFER_FILE][::-1]


def test_files_of_the_operating_system_are_a_warning(golds: Golds, read: Read) -> None:
    junk = {f"__MACOSX/{EER.replace('/', '/._')}": b"\0", "relation_extraction/.DS_Store": b"\0"}
    findings = read(files_of(golds) | junk).findings
    assert findings.errors == []
    [warning] = findings.warnings
    assert warning.kind == "junk" and "contains 2 files" in warning.text


# --- a folder in place of a zip ------------------------------------------------------------------


def link(folder: Path) -> None:
    (folder / EER).unlink()
    (folder / EER).symlink_to(folder.parent / "elsewhere")
    (folder / "loop").symlink_to(folder)


def pipe(folder: Path) -> None:
    (folder / QA).unlink()
    os.mkfifo(folder / QA)


def many(folder: Path) -> None:
    for number in range(1001):
        (folder / QA).with_name(f"{number}.txt").touch()


FOLDERS: dict[str, tuple[Callable[[Path], object], set[tuple[str, str]]]] = {
    "a stray file": (lambda folder: (folder / "sample.zip").write_bytes(b"PK"), set()),
    "links": (link, {(EER, "link"), (EER, "missing-file"), ("loop", "link")}),
    "a pipe": (pipe, {(QA, "not-a-file"), (QA, "missing-file")}),
    "a large file": (
        lambda folder: (folder / QA).write_bytes(b"a" * (FILE_LIMIT + 1)),
        {(QA, "too-large")},
    ),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_is_read_as_a_zip_is(name: str, golds: Golds, read: Read, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    for path, content in files_of(golds).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    change, wanted = FOLDERS[name]
    change(folder)
    findings = read(folder).findings
    assert {(error.file, error.kind) for error in findings.errors} == wanted
    stray = [("sample.zip", "extra-file")] if name == "a stray file" else []
    assert [(w.file, w.kind) for w in findings.warnings] == stray


def test_a_folder_of_too_many_files(read: Read, tmp_path: Path) -> None:
    (tmp_path / "mine" / QA).parent.mkdir(parents=True)
    many(tmp_path / "mine")
    assert read(tmp_path / "mine").findings.errors[0].kind == "too-many-members"


@pytest.mark.parametrize("name", ["absent.zip", "a\0b"])
def test_an_absent_archive(name: str, read: Read, tmp_path: Path) -> None:
    (error,) = read(tmp_path / name).findings.errors
    assert (error.kind, error.file) == ("unreadable", "")
    assert "cannot be opened" in error.text
