"""Coded answers have the scores of the original answers and none of their words."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from tasktransfer.datasets import get_task
from tasktransfer.metrics import evaluate_predictions
from tasktransfer.operate.coded_answers import FIDELITIES, encode_rows
from tasktransfer.results.rows import Row, encode_answers, read_rows, write_rows
from tasktransfer.results.tallies import TallyReader, TestSets

SPAN = get_task("Friends", "question_answering")
PAIRS = [
    ("the big house", "a big house!"),
    ("Joey", "Chandler"),
    ("on the sofa, with Joey", "on the sofa"),
    ("sofa sofa", "sofa"),
    ("", "Joey"),
]


def to_rows(pairs: list[tuple[str, str]]) -> list[Row]:
    return [
        Row(
            index=n,
            instance_id=f"i{n}",
            cluster=f"d{n}",
            task=SPAN.name,
            split="test",
            prediction=(predicted,),
            gold=(right,),
            score=0.0,
        )
        for n, (predicted, right) in enumerate(pairs)
    ]


def table(folder: Path, pairs: list[tuple[str, str]]) -> pa.Table:
    written = write_rows(folder, to_rows(pairs), digest="0", dataset="Friends")
    return read_rows(folder / "rows.parquet", written)


def test_scores_are_the_same_and_no_word_is_left(tmp_path: Path) -> None:
    rows = table(tmp_path, PAIRS)
    changed = encode_rows(rows, SPAN)
    assert changed is not None
    for fidelity in FIDELITIES:
        before, after = (
            evaluate_predictions(
                SPAN, encode_answers(t["prediction"]), encode_answers(t["gold"]), fidelity=fidelity
            )
            for t in (rows, changed)
        )
        assert before == after
        assert 0 < min(before.values()) < max(before.values()) < 100
    texts = " ".join(t for name in ("prediction", "gold") for (t,) in changed[name].to_pylist())
    assert all(word[0] == "w" and word[1:].isdigit() for word in texts.split())
    assert changed["gold"].to_pylist()[1] != changed["prediction"].to_pylist()[1]
    assert changed.drop_columns(["prediction", "gold"]).equals(
        rows.drop_columns(["prediction", "gold"])
    )


def test_right_answers_have_the_same_codes_in_every_run(tmp_path: Path) -> None:
    one, other = (
        encode_rows(table(tmp_path / name, [(guess, right) for _, right in PAIRS]), SPAN)
        for name, guess in (("one", "new words"), ("other", "Joey"))
    )
    assert one is not None and other is not None
    assert one["gold"].equals(other["gold"])


def test_a_run_in_codes_is_shown_next_to_one_with_its_text(tmp_path: Path) -> None:
    """Records from a pack, together with those of trainings that the pack does not contain."""
    rows = table(tmp_path / "text", PAIRS)
    changed = encode_rows(rows, SPAN)
    assert changed is not None
    sets = TestSets()
    digests = [sets.read_test_set(of_run, SPAN).digest for of_run in (rows, changed, rows)]
    assert len({*digests}) == 1
    others = table(tmp_path / "others", [*PAIRS[:-1], ("", "Chandler")])
    assert sets.read_test_set(others, SPAN).digest not in digests


def test_runs_in_codes_and_with_their_text_are_counted_alike(tmp_path: Path) -> None:
    tallies, sums = TallyReader(SPAN, "default", len(PAIRS)), []
    in_codes = encode_rows(table(tmp_path / "text", PAIRS), SPAN)
    assert in_codes is not None
    columns = (in_codes[name].to_pylist() for name in ("prediction", "gold"))
    coded_pairs = [(guess, right) for (guess,), (right,) in zip(*columns, strict=True)]
    for name, pairs in (("text", PAIRS), ("codes", coded_pairs), ("again", PAIRS)):
        expected = write_rows(tmp_path / name, to_rows(pairs), digest="0", dataset="Friends")
        sums.append(tallies.read(tmp_path / name / "rows.parquet", expected))
    assert sums[0].sum() > 0
    assert all((found == sums[0]).all() for found in sums)


def test_labels_stay_and_what_a_model_wrote_instead_does_not(tmp_path: Path) -> None:
    task = get_task("DailyDialog", "emotion_recognition")
    pairs = [
        ("joy", "anger"),
        ("anger", "anger"),
        (" he shot the sheriff", "fear"),
        ("5551234", "fear"),
    ]
    rows = table(tmp_path, pairs)
    changed = encode_rows(rows, task)
    assert changed is not None
    assert changed["gold"].equals(rows["gold"])
    assert changed["prediction"].to_pylist() == [["w1"], ["anger"], ["w2 w3 w4"], ["w5"]]
    before, after = (
        evaluate_predictions(task, *map(encode_answers, pair(t))) for t in (rows, changed)
    )
    assert before == after


def pair(rows: pa.Table) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    return rows["prediction"], rows["gold"]


def test_what_says_that_there_is_no_answer_still_does(tmp_path: Path) -> None:
    task = get_task("DailyDialog", "causal_emotion_span_extraction")
    assert {p for spec in task.metrics for p in spec.unanswerable_phrases} == {"impossible"}
    changed = encode_rows(
        table(tmp_path, [("impossible", "impossible"), ("Joey", "impossible"), ("a", "b")]), task
    )
    assert changed is not None
    assert changed["gold"].to_pylist() == [["impossible"], ["impossible"], ["w1"]]
    assert changed["prediction"].to_pylist() == [["impossible"], ["w2"], [""]]


def test_a_phrase_inside_a_longer_answer_stays(tmp_path: Path) -> None:
    """Prompted models generate such answers; one scoring counts the phrase anywhere."""
    task = get_task("DailyDialog", "causal_emotion_span_extraction")
    said = "The evidence utterance is speaker1: Impossible answer."
    changed = encode_rows(
        table(tmp_path, [(said, "Impossible answer"), ("so glad", "so glad")]), task
    )
    assert changed is not None
    first, second = changed["prediction"].to_pylist()
    assert "impossible" in first[0].split() and "utterance" not in first[0]
    assert set(second[0].split()).isdisjoint({"so", "glad"})
