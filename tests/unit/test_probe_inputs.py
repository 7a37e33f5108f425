"""Inputs of probes: the part of a context that is read, and labels of words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from small_models import Loader
from tasktransfer.datasets.reply_pairs import TURN_END
from tasktransfer.designs.probes.facts import BY_TASK
from tasktransfer.designs.probes.labels import label_instances
from tasktransfer.encoding.tokenizer import load_tokenizer, truncate_texts_left
from tasktransfer.encoding.word_tokenizer import build_word_tokenizer, truncate_to_last_words
from tasktransfer.jobs.probe_job import count_words
from tasktransfer.tasks.card import Instance

HISTORY = f"A cheap hotel, please! {TURN_END} In the north?? {TURN_END} Yes: north. {TURN_END}"


@pytest.mark.parametrize("most", [1, 2, 3, 5, 8, 14, 99])
def test_the_last_words_are_those_that_a_built_model_reads(most: int) -> None:
    tokenizer = build_word_tokenizer([HISTORY], 1)
    ids = tokenizer(HISTORY)["input_ids"][-most:]
    assert truncate_to_last_words(HISTORY, most).split() == tokenizer.convert_ids_to_tokens(ids)


def test_words_before_those_that_are_read_are_not_counted() -> None:
    texts = [
        truncate_to_last_words(f"{word} {HISTORY}", 10)
        for word in ("train", "taxi", "train", "taxi")
    ]
    assert len({*texts}) == 1
    counts = count_words([*texts, "train"], [True] * 4 + [False]).toarray()
    assert counts[4].sum() == 0
    assert np.ptp(counts[:4], axis=0).max() == 0


def test_a_checkpoint_reads_what_its_tokenizer_leaves(load: Loader, models_folder: Path) -> None:
    load("encoder", "DailyDialog", "emotion_recognition")  # makes the folder
    tokenizer = load_tokenizer(str(models_folder / "encoder"), None, "encoder")
    texts = ["the first words are not read but the last are", "the last"]
    for most in (4, 6):
        cut = tokenizer(texts, truncation=True, max_length=most)["input_ids"]
        assert len(cut[0]) == most
        pieces = [tokenizer.convert_ids_to_tokens(ids[1:-1]) for ids in cut]
        read = ["".join(piece.removeprefix("##") for piece in some) for some in pieces]
        parts = truncate_texts_left(tokenizer, texts, most)
        assert [part.replace(" ", "") for part in parts] == read
        assert all(text.endswith(part) for text, part in zip(texts, parts, strict=True))


def turn(number: int, split: str, context: str, reply: str) -> Instance:
    query = {"labels": json.dumps({"WordCont": ["asked"]}), "type": "chat"}
    name = f"{split}{number}"
    return Instance(name, name, "PersonaChat_reply", context, 0, query, (), (reply,))


def test_a_word_of_the_reply_is_one_of_the_training_words_in_every_split() -> None:
    said = f"i like dogs {TURN_END} i like cats {TURN_END} dogs and cats {TURN_END}"
    read = {
        "train": [turn(n, "train", said, "dogs , cats") for n in range(2)],
        # Seen three times here and not in training; and a training word.
        "test": [turn(n, "test", f"bread {TURN_END}", "bread or cats") for n in range(3)],
    }
    rows = label_instances(BY_TASK["PersonaChat_WordCont"], read, "target")
    assert [row.target for row in rows["train"]] == [("dogs",)] * 2
    assert [row.target for row in rows["test"]] == [("cats",)] * 3
    of_context = label_instances(BY_TASK["PersonaChat_WordCont"], read)
    assert {row.target for split in of_context.values() for row in split} == {("asked",)}
