"""The part of a dialogue that is kept if it is too long for a model."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from tasktransfer.core.specs import Family
from tasktransfer.datasets import get_task
from tasktransfer.datasets.declared.check import check_files
from tasktransfer.datasets.declared.lengths import MAX_TRUNCATED_FRACTION, DialogueLengths
from tasktransfer.datasets.declared.task_section import TaskSection
from tasktransfer.encoding.encode import list_truncation_warnings
from tasktransfer.encoding.encoder_examples import build_encoder_examples
from tasktransfer.encoding.middle import compute_kept_ends
from tasktransfer.encoding.text import build_text_to_text_examples
from tasktransfer.tasks.card import Instance, Task
from tasktransfer.training.tiny import create_tokenizer

NUMBERS = [f"n{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(100)]
CONTEXT = " ".join(NUMBERS)
LIMIT = 32


def words_read(family: Family, keeps: str) -> list[str]:
    """Return the words of the context that a model of a family reads."""
    plain = get_task("DailyDialog", "topic_classification")
    task: Task = replace(plain, keeps=keeps)  # type: ignore[arg-type]
    texts = ["context: labels: topic", task.prompt.template, *task.labels]
    tokenizer: Any = create_tokenizer(family, [CONTEXT, *texts] * 9)
    row = Instance("i", "d", task.name, CONTEXT, len(CONTEXT), {}, (), (task.labels[0],))
    if family == "encoder":
        (example,) = build_encoder_examples(tokenizer, task, [row], LIMIT)
    else:
        (example,) = build_text_to_text_examples(tokenizer, task, [row], LIMIT, family, 4)
    (ids,) = example.sequences
    assert len(ids) <= LIMIT
    read = tokenizer.decode(ids).split()
    return [word for word in NUMBERS if word in read]


@pytest.mark.parametrize("family", ["encoder", "encoder_decoder"])
def test_the_part_that_is_requested_stays(family: Family) -> None:
    first, last = NUMBERS[0], NUMBERS[-1]
    end, beginning, both = (words_read(family, keeps) for keeps in ("end", "beginning", "both"))
    assert (first in end, last in end) == (False, True)
    assert (first in beginning, last in beginning) == (True, False)
    assert (first in both, last in both) == (True, True)
    assert NUMBERS[50] not in both
    places = [NUMBERS.index(word) for word in both]
    gaps = [end - start for start, end in pairwise(places) if end - start > 1]
    assert len(gaps) == 1


@pytest.mark.parametrize(
    ("count", "room", "kept"), [(9, 20, (5, 4)), (9, 5, (3, 2)), (9, 1, (1, 0)), (9, -3, (0, 0))]
)
def test_both_ends_share_the_room(count: int, room: int, kept: tuple[int, int]) -> None:
    assert compute_kept_ends(count, room) == kept


def test_a_declaration_keeps_what_its_kind_can() -> None:
    assert TaskSection(kind="dialogue_classification", label="x", keeps="both").keeps == "both"
    for kind, keeps in (("utterance_classification", "start"), ("span", "both")):
        with pytest.raises(ValueError, match="keeps"):
            TaskSection(kind=kind, label="x", question="q", keeps=keeps)  # type: ignore[arg-type]


def test_many_cut_inputs_are_reported() -> None:
    def lines(cut: int) -> list[str]:
        return list_truncation_warnings(
            {
                "max_length": 96,
                "max_answer_tokens": {"emotion": 0},
                "examples": {"emotion-train": 100},
                "truncated": {"emotion-train": cut},
                "lost_answers": {},
                "longer_answers": {},
            }
        )

    assert lines(int(100 * MAX_TRUNCATED_FRACTION)) == []
    (line,) = lines(37)
    assert "emotion-train: 37 of 100" in line
    assert "max_length 96" in line


@pytest.mark.parametrize(("limit", "keeps"), [(30, "both"), (4000, None)])
def test_a_check_declares_both_ends_where_many_dialogues_are_cut(
    limit: int, keeps: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "calls.jsonl"
    rows = [
        {
            "id": f"c{number}",
            "topic": ["bills", "faults"][number % 2],
            "messages": [{"who": "a", "text": f"call {number} is {word}"} for word in NUMBERS[:20]],
        }
        for number in range(40)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    checked = check_files([file], "Calls", limit)
    (task,) = yaml.safe_load(checked.text)["datasets"]["Calls"]["tasks"].values()
    assert checked.problems == []
    assert task.get("keeps") == keeps
    assert any("keeps: both" in note for note in checked.notes) == (keeps is not None)


@pytest.mark.parametrize(
    ("labelled", "keeps"), [((0,), "start"), ((-1,), "end"), ((1,), "both"), ((0, -1), "both")]
)
def test_the_part_with_the_only_label_of_a_dialogues_rows_is_kept(
    labelled: tuple[int, ...], keeps: str, tmp_path: Path
) -> None:
    file, words = tmp_path / "calls.csv", " ".join(NUMBERS[:20])
    lines = ["call,who,text,topic"]
    for number in range(40):
        topics = ["", "", "", ""]
        for place in labelled:
            topics[place] = ["bills", "faults"][number % 2]
        lines += [
            f"c{number},{'ab'[turn % 2]},call {number} turn {turn} is {words},{topic}"
            for turn, topic in enumerate(topics)
        ]
    file.write_text("\n".join(lines) + "\n")
    checked = check_files([file], "Calls", 32)
    assert checked.problems == []
    (task,) = yaml.safe_load(checked.text)["datasets"]["Calls"]["tasks"].values()
    assert (task["kind"], task["keeps"]) == ("dialogue_classification", keeps)
    is_told = any(f"truncated to their {keeps} (keeps: {keeps})" in note for note in checked.notes)
    assert is_told == (keeps != "both")


@pytest.mark.parametrize("turn", [0, 3])
def test_the_input_of_a_labelled_turn_ends_with_the_turn(turn: int, tmp_path: Path) -> None:
    file, rows = tmp_path / "calls.jsonl", []
    for number in range(40):
        turns = [{"who": "a", "text": f"{number} {' '.join(NUMBERS[:20])}"} for _ in range(4)]
        turns[turn]["act"] = ["ask", "tell"][number % 2]
        rows.append({"id": f"c{number}", "messages": turns})
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    checked = check_files([file], "Calls", 60)
    notes = [note for note in checked.notes if "truncated" in note]
    assert bool(notes) == (turn == 3)
    (task,) = yaml.safe_load(checked.text)["datasets"]["Calls"]["tasks"].values()
    assert "keeps" not in task


def test_several_outputs_of_a_turn_keep_the_end() -> None:
    lengths = DialogueLengths([100] * 10, ["f:1"] * 10)
    outputs = {"kind": "multi_output", "outputs": {"q": "turns[].quality", "s": "turns[].mood"}}
    whole = {"kind": "multi_output", "outputs": {"q": "quality"}}
    tasks = {"of_turns": outputs, "of_dialogues": whole}
    lengths.set_truncation(tasks, 50, "turns")
    assert tasks == {"of_turns": outputs, "of_dialogues": {**whole, "keeps": "both"}}
