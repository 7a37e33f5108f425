"""For arbitrary bytes as a submission, the scorer reports the problem and modifies nothing."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from submissions import files_of, load_golds, packed, write_release
from tasktransfer.designs.challenge.golds import Golds
from tasktransfer.designs.challenge.read import read_submission
from tasktransfer.designs.challenge.score import (
    as_json,
    as_text,
    score_submission,
)
from tasktransfer.errors import escape_line

settings.register_profile(
    "scorer", deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
FUZZ = settings(settings.get_profile("scorer"), max_examples=60)

FILE = "question_answering/predictions.csv"
NUMBERS = "emory_emotion_recognition/predictions.csv"
LISTS = "relation_extraction/predictions.csv"


@pytest.fixture(scope="module")
def golds(tmp_path_factory: pytest.TempPathFactory) -> Golds:
    return load_golds(write_release(tmp_path_factory.mktemp("release"), "Friends"), "Friends")


@contextlib.contextmanager
def undisturbed() -> Iterator[Path]:
    """Change to a folder for an archive, two levels below a folder that must not change."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        inner = base / "a" / "b"
        inner.mkdir(parents=True)
        (base / "witness").write_text("unchanged")
        os.chdir(inner)
        try:
            yield inner
            left = sorted(path.relative_to(base) for path in base.rglob("*"))
            kept = [Path("a"), Path("a/b"), Path("witness")]
            assert [path for path in left if path.name != "submission.zip"] == kept
            assert (base / "witness").read_text() == "unchanged"
        finally:
            os.chdir(before)


def check(data: bytes, golds: Golds) -> bool:
    """Score ``data`` as a zip, and return whether it is valid.

    Only SubmissionError may be raised.
    """
    with undisturbed() as folder:
        archive = folder / "submission.zip"
        archive.write_bytes(data)
        submission = read_submission(archive, lambda _: golds)
        assert archive.read_bytes() == data
        if submission.is_valid:
            report = score_submission(submission, golds, "default")
            as_text(report).encode("utf-8")
            assert as_json(report)["valid"]
            return True
        assert score_submission(submission, golds, "default").scores is None
        for finding in submission.findings.errors:
            assert finding.text and str(finding) == escape_line(str(finding))
            assert finding.line is None or finding.line > 0
            str(finding).encode("utf-8")
        return False


@FUZZ
@given(data=st.data())
def test_random_damage_to_a_zip(data: st.DataObject, golds: Golds) -> None:
    whole = bytearray(packed(files_of(golds)))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    check(bytes(whole[:cut]), golds)
    check(bytes(whole), golds)


PIECES = st.sampled_from(
    (
        *("d_What", "e_Who", "d_t2", ",", ",,", '"', '""', "\n", "\r\n", "\r", " ", ";", "\t"),
        *("[", "]", "0", "1", "-1", "1.0", "1e9", "٣", "é", "a" * 300),
        *("\ufeff", "\x00", "\u2028", "\x85"),
    )
)


@FUZZ
@given(pieces=st.lists(PIECES, max_size=40), name=st.sampled_from([FILE, NUMBERS, LISTS]))
def test_random_csv(pieces: list[str], name: str, golds: Golds) -> None:
    files = files_of(golds)
    mixed = "".join(pieces).encode()
    check(packed(files | {name: mixed}), golds)
    check(packed(files | {name: files[name] + mixed}), golds)


NAMES = st.one_of(
    st.text(min_size=1, max_size=20),
    st.lists(
        st.sampled_from(["..", ".", "", "/", "\\", "C:", "question_answering", "predictions.csv"])
        | st.text(max_size=5),
        min_size=1,
        max_size=6,
    ).map("/".join),
)


def _member(archive: zipfile.ZipFile, name: str, content: bytes, mode: int) -> None:
    info = zipfile.ZipInfo("x")
    info.filename, info.external_attr = name, mode << 16
    archive.writestr(info, content)


@FUZZ
@given(
    members=st.lists(
        st.tuples(NAMES, st.binary(max_size=30), st.sampled_from([0, 0o100644, 0o120777, 0o40755])),
        max_size=5,
    ),
    whole=st.booleans(),
)
def test_random_members(members: list[tuple[str, bytes, int]], whole: bool, golds: Golds) -> None:
    buffer = io.BytesIO(packed(files_of(golds) if whole else {}))
    with zipfile.ZipFile(buffer, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a name that is there already
        for name, content, mode in members:
            # The reader need not handle names that cannot be written.
            with contextlib.suppress(UnicodeEncodeError, ValueError):
                _member(archive, name, content, mode)
    check(buffer.getvalue(), golds)
