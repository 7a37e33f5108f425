"""The local leaderboard: ranks, intervals, paired tests, and output files."""

from __future__ import annotations

import csv
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from submissions import Answer, files_of, load_golds, packed
from tasktransfer import metrics
from tasktransfer.cli import main
from tasktransfer.datasets import DATASETS
from tasktransfer.designs.challenge.format import BASELINE_FILE, FILES, TRANSFER_FILE
from tasktransfer.designs.challenge.golds import Golds, TaskGolds
from tasktransfer.designs.challenge.leaderboard import Board, Leaderboard, make_leaderboard
from tasktransfer.designs.challenge.leaderboard_pages import as_html, as_markdown, write_leaderboard
from tasktransfer.designs.challenge.score import score_file
from tasktransfer.errors import SubmissionError
from tasktransfer.stats.draws import sample_unit_weights

CARDS = {card.name: card for dataset in DATASETS.values() for card in dataset.cards}


def wrong_every(every: int, offset: int = 0) -> Answer:
    """Make errors at every second baseline instance, and at every ``every``-th with transfer."""

    def answer(task: str, file: str, instance: int, gold: tuple[str, ...]) -> tuple[str, ...]:
        if file == BASELINE_FILE:
            wrong = instance % 2 == 0
        else:
            wrong = every > 0 and (instance + offset) % every == 0
        if not wrong:
            return gold
        card = CARDS[task]
        if card.kind == "span":
            return ("no such words",)
        if card.kind == "multi_label":
            return (card.labels[20],)
        return tuple(card.labels[(card.labels.index(label) + 1) % card.classes] for label in gold)

    return answer


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a tiny world with about ten to fifty test instances per task."""
    folder = tmp_path_factory.mktemp("world") / "release"
    assert main(["world", "--seed", "3", "--dialogues", "120", "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def golds(data: Path) -> Golds:
    return load_golds(data, "Friends")


ENTRIES = {
    "best.zip": wrong_every(0),
    "second.zip": wrong_every(9),
    "same as second.zip": wrong_every(9),
    "near second.zip": wrong_every(9, 1),
    "worst.zip": wrong_every(2),
}


@pytest.fixture(scope="module")
def folder(golds: Golds, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("entries")
    for name, answer in ENTRIES.items():
        (folder / name).write_bytes(packed(files_of(golds, answer)))
    files = files_of(golds) | {"MELD_emotion_recognition/predictions.csv": b"x,9\ny,9\n"}
    (folder / "<b>broken|.zip").write_bytes(packed(files))
    (folder / "no zip.ZIP").write_bytes(b"hello")
    (folder / "notes.txt").write_text("no archive")
    return folder


@pytest.fixture(scope="module")
def leaderboard(folder: Path, data: Path) -> Leaderboard:
    return make_leaderboard(folder, data)


@pytest.fixture(scope="module")
def board(leaderboard: Leaderboard) -> Board:
    (board,) = leaderboard.boards
    return board


def test_entries_are_ranked_by_submission_score(board: Board, folder: Path, data: Path) -> None:
    names = [entry.name for entry in board.entries]
    assert names[0] == "best.zip" and names[-1] == "worst.zip" and set(names) == set(ENTRIES)
    for entry in board.entries:
        report = score_file(folder / entry.name, data)
        assert report.scores is not None
        assert entry.scores.as_json() == pytest.approx(report.scores.as_json(), abs=1e-9)
        assert entry.task_deltas == pytest.approx(
            {n: task.transfer.score - task.baseline.score for n, task in report.tasks.items()},
            abs=1e-9,
        )


def _file_draws(task: TaskGolds, answer: Answer, file: str, weights: np.ndarray) -> list[float]:
    """Score every resampled test set explicitly, which is slow."""
    predicted = [answer(task.task.name, file, n, gold) for n, gold in enumerate(task.answers)]
    if task.task.kind == "span":
        predicted = [one[:1] for one in predicted]
    scores = []
    for counts in weights:
        # As often as its dialogue.
        each = counts[task.units.of_instance].astype(int)
        drawn = np.repeat(np.arange(len(task.answers)), each)
        values = metrics.evaluate_predictions(
            task.task, [predicted[n] for n in drawn], [task.answers[n] for n in drawn]
        )
        scores.append(metrics.compute_task_score(task.task, values))
    return scores


def test_interval_and_p_are_those_of_the_paired_bootstrap(board: Board, golds: Golds) -> None:
    drawn: dict[str, np.ndarray] = {}
    for name in ("second.zip", "near second.zip"):
        means = {}
        for file in FILES:
            each = [
                _file_draws(
                    task,
                    ENTRIES[name],
                    file,
                    sample_unit_weights("Friends", task.task.name, task.units.count)[:300],
                )
                for task in golds.tasks.values()
            ]
            means[file] = np.mean(each, axis=0)
        drawn[name] = means[TRANSFER_FILE] - 0.9 * means[BASELINE_FILE]
    entry = next(entry for entry in board.entries if entry.name == "second.zip")
    low, high = entry.compute_interval("submission_score")
    reach = 1.96 * drawn["second.zip"].std(ddof=1)
    assert (high - low) / 2 == pytest.approx(reach, rel=0.1)
    assert (high + low) / 2 == pytest.approx(entry.scores.submission)
    pair = next(p for p in board.pairs if {p.first, p.second} == set(drawn))
    apart = drawn["second.zip"] - drawn["near second.zip"]
    assert (pair.high - pair.low) / 2 == pytest.approx(1.96 * apart.std(ddof=1), rel=0.1)
    # Unpaired, the spread of the difference would be larger by more than that tolerance.
    unpaired = math.hypot(*(one.std(ddof=1) for one in drawn.values()))
    assert unpaired > 1.15 * apart.std(ddof=1)


def test_a_test_set_of_one_dialogue_has_no_interval_and_says_why(
    board: Board, leaderboard: Leaderboard
) -> None:
    entry = replace(
        board.entries[1],
        draws={name: draws * np.nan for name, draws in board.entries[1].draws.items()},
        q_above=math.nan,
    )
    assert np.isnan(entry.compute_interval("submission_score")).all()
    assert not entry.differs_from_above
    alone = replace(leaderboard, boards=[replace(board, entries=[board.entries[0], entry])])
    text = as_markdown(alone)
    assert "no interval, because all test instances of a task are from one dialogue" in text
    assert text.count("no interval") == 1


def test_pairs_and_their_adjusted_p(board: Board) -> None:
    assert len(board.pairs) == math.comb(len(ENTRIES), 2)
    pair_of = {frozenset((pair.first, pair.second)): pair for pair in board.pairs}
    same = pair_of[frozenset(("second.zip", "same as second.zip"))]
    assert (same.difference, same.p, same.q) == (0.0, 1.0, 1.0)
    assert same.low == same.high == 0.0
    clear = pair_of[frozenset(("best.zip", "worst.zip"))]
    assert clear.difference > 0 and clear.q < 0.001
    assert all(pair.p <= pair.q <= 1 for pair in board.pairs)
    ordered = sorted(board.pairs, key=lambda pair: pair.p)
    steps = [pair.p * len(ordered) / place for place, pair in enumerate(ordered, start=1)]
    best = [min(1.0, *steps[place:]) for place in range(len(steps))]
    assert [pair.q for pair in ordered] == pytest.approx(best)


def test_entries_that_cannot_be_distinguished_are_marked(
    board: Board, leaderboard: Leaderboard
) -> None:
    entries = {entry.name: entry for entry in board.entries}
    assert board.entries[0].q_above is None
    tied = [entries["second.zip"], entries["same as second.zip"]]
    later = max(tied, key=board.entries.index)
    assert later.q_above == 1.0 and not later.differs_from_above
    assert entries["worst.zip"].differs_from_above
    lines = as_markdown(leaderboard).splitlines()
    rows = {name: next(line for line in lines if f"| {name} " in line) for name in entries}
    assert "not significantly different from the entry above" in rows[later.name]
    assert "\\< 0.001 |" in rows["worst.zip"]


def test_invalid_archives_are_listed_apart(leaderboard: Leaderboard) -> None:
    broken, text = leaderboard.invalid
    assert (broken.entry, broken.dataset) == ("<b>broken|.zip", "Friends")
    assert "MELD_emotion_recognition/predictions.csv:1: 'x': '9' is out of range" in broken.error
    assert broken.errors > 4
    assert text.entry == "no zip.ZIP" and "cannot be read as a zip" in text.error
    markdown, page = as_markdown(leaderboard), as_html(leaderboard)
    assert "| \\<b\\>broken\\|.zip |" in markdown and "notes.txt" not in markdown
    assert page.startswith("<!DOCTYPE html>")
    assert "SYNTHETIC" in markdown and "SYNTHETIC" in page
    assert "&lt;b&gt;broken|.zip" in page and "<b>" not in page
    assert "http" not in page.replace("http-equiv", "") and "<script" not in page


def test_the_files(leaderboard: Leaderboard, board: Board, tmp_path: Path) -> None:
    paths = write_leaderboard(leaderboard, tmp_path)
    assert {path.name for path in paths} == {path.name for path in tmp_path.iterdir()}
    rows = {
        path.stem: list(csv.DictReader(path.open(newline="")))
        for path in paths
        if path.suffix == ".csv"
    }
    for row, entry in zip(rows["leaderboard"], board.entries, strict=True):
        assert (row["entry"], row["rank"], row["synthetic"]) == (entry.name, str(entry.rank), "1")
        assert float(row["submission_score"]) == entry.scores.submission
        assert float(row["score_delta_low"]) == entry.compute_interval("score_delta")[0]
        assert float(row["delta_question_answering"]) == entry.task_deltas["question_answering"]
    assert [float(row["q"]) for row in rows["pairs"]] == [pair.q for pair in board.pairs]
    assert [row["entry"] for row in rows["invalid"]] == ["<b>broken|.zip", "no zip.ZIP"]


def test_more_processes_change_nothing(
    folder: Path, data: Path, leaderboard: Leaderboard, tmp_path: Path
) -> None:
    copies = tmp_path / "copies"
    shutil.copytree(folder, copies)
    for number in range(3):
        shutil.copy(folder / "second.zip", copies / f"copy{number}.zip")
    assert len(list(copies.glob("*.[zZ][iI][pP]"))) > 8  # as many as are worth two processes
    assert make_leaderboard(copies, data, jobs=2) == make_leaderboard(copies, data)


def test_the_command(
    folder: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "board"
    words = ["leaderboard", str(folder), "--data", str(data), "--out", str(out), "--jobs", "1"]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("# Friends\n") and "# Invalid archives" in shown
    assert str(out / "leaderboard.html") in shown
    assert (out / "leaderboard.md").read_text() in shown


def test_a_folder_without_archives(tmp_path: Path, data: Path) -> None:
    with pytest.raises(SubmissionError, match=r"contains no \.zip"):
        make_leaderboard(tmp_path, data)
    with pytest.raises(SubmissionError, match="cannot be listed"):
        make_leaderboard(tmp_path / "absent", data)
