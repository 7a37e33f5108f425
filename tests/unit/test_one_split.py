"""No reader accepts a dialogue in two splits, by name or by text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import small_corpora as sound
from corpus_reads import ED_SPLIT, EMOTION, OWN, READS, WOZ, read
from small_corpora import as_csv, said
from tasktransfer.datasets.disjoint_splits import (
    SplitDialogue,
    check_disjoint_splits,
    count_words,
    normalise_text,
)
from tasktransfer.datasets.multiwoz import MULTIWOZ
from tasktransfer.designs.empathetic.sources import dialogues
from tasktransfer.errors import DataError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sound.write(tmp_path)
    return tmp_path


def copied(folder: Path, source: str, target: str) -> None:
    (folder / target).write_bytes((folder / source).read_bytes())


def renamed(folder: Path, source: str, target: str) -> None:
    """Return the dialogues of a MultiWOZ file with other names, case and punctuation."""
    text = (folder / source).read_text().replace("one two", "One, two!")
    named = {f"new-{name}": dialogue for name, dialogue in json.loads(text).items()}
    (folder / target).write_text(json.dumps(named))


TRAIN, VAL, TEST = (f"multiwoz20/{name}.json" for name in ("train", "val", "test"))
LEARNT = "otherwise a model is tested on its training data"


@pytest.mark.parametrize(
    ("reads", "copy", "source", "target", "told"),
    [
        (
            WOZ,
            copied,
            TEST,
            TRAIN,
            r"'test0.json' is in train and in test \(12 in all\). Fetch the",
        ),
        (
            WOZ,
            copied,
            VAL,
            TEST,
            r"'val0.json' is in dev and in test \(12 in all\). Fetch the files",
        ),
        (
            *(WOZ, renamed, TEST, TRAIN),
            r"\(train\) and 'test0.json' \(test\) have the same text \(12 in all",
        ),
        (
            *(sound.VALID, copied, sound.VALID, sound.PERSONA),
            r"is in train and in dev \(40 in all\). F",
        ),
        (
            *(OWN, copied, "own/dev.jsonl", "own/train.jsonl"),
            r"'own-train-1' \(train\) and 'own-dev-1' ",
        ),
        (
            *("train.tsv", copied, "test.tsv", "train.tsv"),
            r"'train-1' .* and 'test-1' .* have the same text",
        ),
    ],
)
def test_a_split_that_is_a_copy_of_another(
    reads: str, copy: Any, source: str, target: str, told: str, folder: Path
) -> None:
    copy(folder, source, target)
    with pytest.raises(DataError, match=told) as caught:
        READS[reads](folder)
    assert str(folder / source) in str(caught.value)
    assert str(folder / target) in str(caught.value)
    assert LEARNT in str(caught.value)


def test_a_copied_file_is_refused_without_a_training_set_too(folder: Path) -> None:
    (folder / TRAIN).unlink()
    copied(folder, VAL, TEST)
    with pytest.raises(DataError, match=r"'val0\.json' is in dev and in test"):
        read(MULTIWOZ, folder)


def test_one_dialogue_of_empathetic_dialogues_under_two_names(folder: Path) -> None:
    file = folder / "empathetic_dialogues" / "synthetic.json"
    content = json.loads(file.read_text())
    rows = [("situation", "none"), ("utterance", "speaker"), ("utterance", "listener")]
    with (folder / EMOTION).open("ab") as lines:
        for name in ("hit:1", "hit:2"):
            texts = ((name, kind, actor, said(7, n)) for n, (kind, actor) in enumerate(rows))
            lines.write(as_csv(*texts))
    with (folder / ED_SPLIT).open("a") as lines:
        lines.write("hit:1,train\nhit:2,test\n")
    assert READS[EMOTION](folder)  # generated: a grammar says the same twice by chance
    assert content.pop("synthetic")
    file.unlink()
    told = (
        r"'hit:1' \(train\) and 'hit:2' \(test\) have the same text. Keep one of them, or give both"
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(dialogues, "LABELS", content["emotions"])
        with pytest.raises(DataError, match=rf"afraid\.csv: Dialogues {told}"):
            READS[EMOTION](folder)


def test_what_a_published_release_has_twice_is_reported_and_not_refused() -> None:
    def release(twice: int) -> Iterator[SplitDialogue]:
        for n in range(1000):
            yield SplitDialogue(f"train-{n}", "train", said(n, 0), "train.json")
            yield SplitDialogue(
                f"test-{n}", "test", said(n if n < twice else n + 5000, 0), "test.json"
            )

    told = "3 dialogues are in train and in test with the same text (of 1,000 and 1,000), as in the"
    (line,) = check_disjoint_splits(release(3), allowed=0.003)
    assert line.startswith(told)
    assert check_disjoint_splits(release(0)) == ()
    for twice, allowed in ((4, 0.003), (1, 0.0)):
        with pytest.raises(
            DataError, match=r"'train-0' \(train\) and 'test-0' \(test\) have the sa"
        ):
            check_disjoint_splits(release(twice), allowed=allowed)


def test_short_texts_are_said_twice_by_chance() -> None:
    both = [SplitDialogue(split, split, "I like this one!", "file") for split in ("train", "test")]
    assert check_disjoint_splits(both) == ()
    with pytest.raises(DataError, match="file: Dialogues 'train'"):
        check_disjoint_splits(both, least_words=1)


SAME_TEXTS = {
    "case, spaces and punctuation": ("Well, I see!", "well i SEE"),
    "Unicode forms": ("un café", "un cafe\u0301"),
    "characters without a width": ("pay\u200bment \u2764", "payment \u2764\ufe0f"),
    "Chinese punctuation": ("你好。", "你好!"),
}
OTHER_TEXTS = {
    "emojis": ("🙂👍", "🙂🙂👍"),
    "emojis beside a word": ("ok 🙂", "ok 🙁"),
    "punctuation alone": ("?!", "..."),
    "vowel signs of Hindi": ("कि", "की"),
    "Chinese": ("你好", "您好"),
    "symbols": ("5 €", "5 £"),
}


@pytest.mark.parametrize("kind", SAME_TEXTS)
def test_spelling_does_not_tell_texts_apart(kind: str) -> None:
    first, second = SAME_TEXTS[kind]
    assert normalise_text(first) == normalise_text(second)


@pytest.mark.parametrize("kind", OTHER_TEXTS)
def test_characters_of_every_script_tell_texts_apart(kind: str) -> None:
    first, second = OTHER_TEXTS[kind]
    assert normalise_text(first) != normalise_text(second)


def test_words_are_counted_in_scripts_without_spaces() -> None:
    assert count_words("one  two\nthree") == 3
    assert count_words("我想问一下怎么退款") > 4


def test_texts_of_punctuation_alone_are_compared_as_they_are() -> None:
    faces = [SplitDialogue(f"{split}0", split, text * 12, split) for split, text in FACES.items()]
    assert check_disjoint_splits(faces) == ()


FACES = {"train": ":) ", "test": ":( "}
