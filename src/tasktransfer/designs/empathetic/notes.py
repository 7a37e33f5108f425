"""Notes below the printed tables."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from tasktransfer.designs.empathetic.config import get_config
from tasktransfer.designs.empathetic.methods import (
    NOT_COMPARABLE,
    TOPIC_TASKS,
    get_paper_name,
    parse_prepend,
)
from tasktransfer.designs.empathetic.recipes import split_label
from tasktransfer.designs.empathetic.sources.cards import LABELS
from tasktransfer.metrics.bleu import split_words
from tasktransfer.results.frames import Frames


def list_method_notes(frames: Frames, frame: pd.DataFrame) -> list[str]:
    """Return a note for each method that reads gold labels."""
    not_comparable = [name for name in NOT_COMPARABLE if (frame["method"] == name).any()]
    return [
        f"The method {name} is given the gold label, which the other methods must predict, so its "
        f"scores are not comparable. The scores of {name} are not an upper bound either, because a "
        "label may distract the model."
        for name in not_comparable
    ]


def list_interval_notes(frames: Frames, frame: pd.DataFrame) -> list[str]:
    """Return notes on the units that intervals resample, and on the candidates of P@1."""
    seeds, over = frames["summary"]["seeds"], "dialogues only, because there is one seed"
    if (seeds > 1).any():
        once = "" if (seeds > 1).all() else " (only dialogues for models with one seed)"
        over = f"dialogues and seeds{once}"
    return [
        f"Intervals (95 %) are over {over}. Intervals of perplexity are computed on the log scale.",
        describe_blocks(frames),
        *list_method_notes(frames, frame),
    ]


def describe_table2(frames: Frames, frame: pd.DataFrame) -> list[str]:
    """Return the notes of Table 2."""
    twice = (
        "The paper prints Base twice, as the reference of each group. This table lists Base once."
    )
    lost = describe_lost_words(frames, frame["method"].unique())
    notes = [*list_interval_notes(frames, frame), *lost]
    return [*notes, *([twice] if "published" in frame else [])]


def describe_lost_words(frames: Frames, methods: Iterable[str]) -> list[str]:
    """Return a note on methods whose labels may replace words of the context.

    The input is extended by one token per label, which is part of the identity of its data. Labels
    of several words therefore replace the last words of a long context.
    """
    config, lost = get_config(frames.study), []
    for method in methods:
        what, k = parse_prepend(method) or ("", 0)
        labels = TOPIC_TASKS[config.topics.dataset].labels if what == "topic" else LABELS
        spelled = labels if config.release_compat else [split_label(label) for label in labels]
        words = sum(sorted((len(split_words(text)) for text in spelled), reverse=True)[:k])
        if words > k:
            lost.append(f"{get_paper_name(method)}: up to {words - k}")
    if not lost:
        return []
    return [
        "If a context is longer than the model's maximum length, a prepended label of several "
        f"words displaces the last words of the context ({'; '.join(lost)} words)."
    ]


def describe_blocks(frames: Frames) -> str:
    """Return the note on the candidates of P@1."""
    evaluation = get_config(frames.study).evaluation
    text = (
        f"For P@1, the {evaluation.block} replies of a block of consecutive test rows are ranked. "
        "Some replies of a block are from the same dialogue. The table “P@1 and reply order” shows "
        "P@1 for random blocks, which are easier."
    )
    if evaluation.limit is None:
        return text
    return f"{text} The study uses a sample of {evaluation.limit // evaluation.block} blocks."


def describe_orders(frames: Frames, frame: pd.DataFrame) -> list[str]:
    """Return the notes on blocks and on chance level."""
    chance = 100 / get_config(frames.study).evaluation.block
    return [
        describe_blocks(frames),
        f"The chance level is {chance:.3g} %.",
        *list_method_notes(frames, frame),
    ]
