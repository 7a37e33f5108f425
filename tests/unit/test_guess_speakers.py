"""Speakers that are guessed from their values, and labels that are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_guess import check, section_in

from tasktransfer.tasks.compose import estimate_tokens

TEXTS = ("my parcel is late", "let me look", "it was sent on Monday", "thank you", "good bye then")
Turns = list[dict[str, Any]]


def rows(speakers: str | list[str], name: str = "s", **others: str) -> str:
    """Return 24 dialogues of five turns, whose field ``name`` repeats ``speakers``."""
    dialogues = []
    for number in range(24):
        turns: Turns = []
        for place, text in enumerate(TEXTS):
            turn = {name: speakers[place % len(speakers)], "t": f"{text} {number}"}
            values = {key: v[(number * 7 + place * place) % len(v)] for key, v in others.items()}
            turns.append(turn | values)
        dialogues.append({"turns": turns, "intent": "xyz"[number % 3]})
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in dialogues)


@pytest.mark.parametrize(
    ("speakers", "name"),
    [("ab", "s"), (["mom", "dad", "kid"], "s"), (["客户", "客服"], "说话人"), ("12", "p")],
    ids=["two", "three", "Chinese", "digits"],
)
def test_a_field_that_alternates_is_the_speaker(
    speakers: str | list[str], name: str, tmp_path: Path
) -> None:
    checked = check(tmp_path, "d.jsonl", rows(speakers, name))
    section = section_in(checked)
    assert section["dialogue"]["speaker"] == name
    assert section["tasks"].keys() == {"intent"}
    assert checked.dialogue[1].split()[:2] == ["1", f"{speakers[0]}:"]
    assert any(f"{name} alternates from turn to turn" in note for note in checked.notes)


def test_the_id_of_dialogues_is_not_a_speaker(tmp_path: Path) -> None:
    content = "".join(
        f"{json.dumps({'id': f'd{n}', 'text': f'{text} {n}', 'mood': 'xyz'[(n + t) % 3]})}\n"
        for n in range(12)
        for t, text in enumerate(TEXTS)
    )
    section = section_in(check(tmp_path, "d.jsonl", content))
    assert section["dialogue"] == {"text": "text", "id": "id"}


def test_a_label_is_not_a_speaker(tmp_path: Path) -> None:
    section = section_in(check(tmp_path, "d.jsonl", rows("ab", "who", s="pqrs")))
    assert section["dialogue"]["speaker"] == "who"
    assert section["tasks"]["s"]["label"] == "turns[].s"
    alternates = section_in(check(tmp_path, "e.jsonl", rows("qr", "act")))
    assert "speaker" not in alternates["dialogue"] and "act" in alternates["tasks"]


def test_the_only_label_is_not_a_speaker(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in rows("ab").splitlines()]
    content = "".join(f"{json.dumps({'turns': row['turns']})}\n" for row in lines)
    section = section_in(check(tmp_path, "d.jsonl", content))
    assert "speaker" not in section["dialogue"] and section["tasks"].keys() == {"s"}


def test_many_labels_are_read_if_the_field_is_named_so(tmp_path: Path) -> None:
    def content(name: str) -> str:
        return "".join(
            json.dumps({"dialog": [f"it is about {n % 150}", "hm"], name: f"i{n % 150}"}) + "\n"
            for n in range(450)
        )

    checked = check(tmp_path, "d.jsonl", content("fine_intent"))
    assert "fine_intent:  # 150 labels" in checked.text and checked.problems == []
    assert section_in(checked)["dialogue"] == {"turns": "dialog"}
    assert any(
        "No field looks like a label" in p
        for p in check(tmp_path, "e.jsonl", content("x")).problems
    )


def test_marks_between_turns_are_reported(tmp_path: Path) -> None:
    texts = [f"where is parcel {n} __eou__ let me look __eou__ thanks" for n in range(20)]
    lines = [json.dumps({"text": text, "label": "ab"[n % 2]}) for n, text in enumerate(texts)]
    checked = check(tmp_path, "d.jsonl", "\n".join(lines))
    assert any("'__eou__' occurs in 20 of 20 texts" in note for note in checked.notes)


def test_texts_without_spaces_are_texts(tmp_path: Path) -> None:
    texts = ("我的包裹还没到请帮我查一下", "请稍等我看看", "谢谢你的帮助")
    lines = [
        json.dumps({"对话": [f"{text}{n}" for text in texts], "意图": ["退款", "物流"][n % 2]})
        for n in range(20)
    ]
    checked = check(tmp_path, "d.jsonl", "\n".join(lines))
    assert section_in(checked)["dialogue"] == {"turns": "对话"}
    assert "2 labels: 退款 (10), 物流 (10)" in checked.text
    assert estimate_tokens("".join(texts)) >= sum(map(len, texts))
