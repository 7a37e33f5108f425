"""Every way to break a submission has an error of its own, with its file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from damaged_archives import DAMAGES, EER, FILE_LIMIT, PD, QA, RE, TOTAL_LIMIT
from submissions import files_of, golds_of, lines_of, packed, with_line, write_release
from tasktransfer.cli import main
from tasktransfer.designs.transfer.challenge import members
from tasktransfer.designs.transfer.challenge.findings import Findings, listed
from tasktransfer.designs.transfer.challenge.golds import Golds
from tasktransfer.designs.transfer.challenge.read import read_submission


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "MAX_FILE_BYTES", FILE_LIMIT)
    monkeypatch.setattr(members, "MAX_TOTAL_BYTES", TOTAL_LIMIT)
    monkeypatch.setattr(members, "MAX_ARCHIVE_BYTES", TOTAL_LIMIT)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_release(tmp_path_factory.mktemp("release"), "Friends")


@pytest.fixture(scope="module")
def golds(data: Path) -> Golds:
    return golds_of(data, "Friends")


def findings_of(path: Path, golds: Golds) -> Findings:
    return read_submission(path, lambda _: golds).findings


def test_the_undamaged_one_is_valid(golds: Golds, tmp_path: Path) -> None:
    archive = tmp_path / "submission.zip"
    archive.write_bytes(packed(files_of(golds)))
    findings = findings_of(archive, golds)
    assert (findings.errors, findings.warnings) == ([], [])


@pytest.mark.parametrize("name", DAMAGES)
def test_each_damage_has_its_own_error(name: str, golds: Golds, tmp_path: Path) -> None:
    damage = DAMAGES[name]
    archive = tmp_path / "submission.zip"
    archive.write_bytes(damage.make(files_of(golds)))
    errors = findings_of(archive, golds).errors
    found = [error for error in errors if error.kind == damage.kind]
    assert [(error.file, error.line) for error in found] == [(damage.file, damage.line)], errors
    assert damage.says in found[0].text
    assert str(found[0]).startswith(
        f"{damage.file}:{damage.line}: " if damage.line else damage.file
    )
    assert list(tmp_path.iterdir()) == [archive]


def test_a_damage_hides_no_other(golds: Golds, tmp_path: Path) -> None:
    files = files_of(golds)
    files = with_line(files, EER, 1, b"d_t2,9")
    files = with_line(files, EER, 2, b"e_t2,x")
    files = with_line(files, QA, 2, b"d_Who,Ren\xe9e")
    files |= {"../evil": b"", "summary/predictions.csv": b""}
    del files[RE]
    archive = tmp_path / "submission.zip"
    archive.write_bytes(packed(files))
    kinds = [error.kind for error in findings_of(archive, golds).errors]
    wanted = ["unsafe-path", "extra-task", "missing-file", "out-of-range", "wrong-type", "encoding"]
    assert sorted(kinds) == sorted(wanted)


def test_a_faulty_line_is_one_error_and_not_a_missing_id_too(golds: Golds, tmp_path: Path) -> None:
    archive = tmp_path / "submission.zip"
    archive.write_bytes(packed(with_line(files_of(golds), QA, 1, b"d_What,\xff")))
    assert len(findings_of(archive, golds).errors) == 1


def test_few_are_printed_and_all_are_in_the_report(
    data: Path, golds: Golds, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = files_of(golds)
    lines = [line.split(b",")[0] + b",9" for line in lines_of(files, PD)]
    files[PD] = b"\n".join([*lines, *lines])
    archive, report = tmp_path / "submission.zip", tmp_path / "report.json"
    archive.write_bytes(packed(files))
    code = main(["score", str(archive), "--data", str(data), "--json", str(report)])
    shown = capsys.readouterr()
    assert code == 9
    assert shown.out == ""
    assert "submission.zip: not a valid submission, 30 errors" in shown.err
    assert f"  {PD}: ... and 20 more (10 out-of-range, 10 duplicate-id)" in shown.err
    assert len(shown.err.splitlines()) == 12
    assert report.read_text().count('"kind"') == 30


def test_findings_of_every_file_are_listed() -> None:
    findings = Findings()
    for file in ("a", "b"):
        for line in range(1, 4):
            findings.error(file, line, "k", "wrong")
    assert listed(findings.errors, per_file=2) == [
        "  a:1: wrong",
        "  a:2: wrong",
        "  a: ... and 1 more (1 k)",
        "  b:1: wrong",
        "  b:2: wrong",
        "  b: ... and 1 more (1 k)",
    ]


def test_junk_of_the_operating_system_is_a_warning(golds: Golds, tmp_path: Path) -> None:
    files = files_of(golds)
    files |= {f"__MACOSX/{EER.replace('/', '/._')}": b"\0", "relation_extraction/.DS_Store": b"\0"}
    archive = tmp_path / "submission.zip"
    archive.write_bytes(packed(files))
    findings = findings_of(archive, golds)
    assert findings.errors == []
    assert [(warning.kind, warning.text[:7]) for warning in findings.warnings] == [
        ("junk", "2 files")
    ]
