"""Synthetic dialogues of three domains from a grammar, and rated sets with planted quality.

Statements and replies are about things of two topics. In Harbour and Workshop a fitting reply keeps
the topic, in Orchard it changes it. In a rated set, the topic of a reply alone says nothing about
its fit. A reply that fits in Harbour is wrong in Orchard, so the experts of these domains rate each
other's replies the wrong way round. Like people's replies, not every reply of a domain fits; the
labeller relabels those. Word order counts little in the trained domains, and it is the only
criterion in the untrained domain. Utterances have at most five words, so none is long enough to be
a leak.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from tasktransfer.datasets.dailydialog.tiny_words import MOOD_WORDS
from tasktransfer.datasets.dataset import TinyPart, TinySize
from tasktransfer.datasets.feta.tiny_world import create_generator, sample_value

TOPICS = tuple(MOOD_WORDS[mood].common[:2] for mood in ("bright", "fierce"))
"""Things that dialogues are about, by topic."""
THINGS = tuple(thing for things in TOPICS for thing in things)
CHANGES = {"Harbour": False, "Orchard": True, "Workshop": False}
"""Domain → true if a fitting reply changes the topic, false if it keeps it."""
STATEMENTS = {
    "Harbour": ("I saw the {thing} today.", "They talked about the {thing}."),
    "Orchard": ("Look at that {thing} there.", "You know that {thing} well."),
    "Workshop": ("Where is the {thing} now?", "Here is your {thing} again."),
    "Market": ("I saw that {thing} well.", "They know the {thing} there."),
}
REPLIES = (
    "We leave the {thing} home.",
    "She comes with that {thing}.",
    "You wait for the {thing}.",
    "They stay at that {thing}.",
)
PERSONAS = {"Harbour": ("i sail every day.", "my boat is old.", "i sell fish.")}
"""Domain → sentences of the answering speaker's persona."""

COMMON = 0.75
"""Fraction of training statements that are about the first topic.

With equally frequent topics, no word of a pair would correlate with its label, only the combination
of two words. Gradient descent learns such a combination late or never, but soon if one of the two
words correlates with the label (merged staircase, Abbe et al. 2022, arXiv:2202.08658). In training
pairs, the topic of the reply does. In rated sets it does not, because their topics are equally
frequent.
"""
FITTING = 0.6
"""Fraction of a domain's replies that fit."""
QUALITY = {(True, True): 0.95, (True, False): 0.7, (False, True): 0.3, (False, False): 0.05}
"""(right topic, words in order) → planted quality, 0 to 1.

A rule that reads only the reply sees the word order, whose correlation with quality is about 0.4.
"""
UNFITTING = ((False, True), (False, True), (True, False))
"""(right topic, words in order) of the labeller's unfitting pairs.

Most are about the other topic, which is the harder case.
"""
ORDERED = 0.7
"""Fraction of a rated set's responses with their words in order."""
NOISE = 0.12
RATERS = 3
RESPONSES = 4
RATED_SHARE = 0.12
"""Number of contexts of a rated set, as a fraction of a domain's dialogues."""
SPLITS = {"train": 0.7, "dev": 0.15, "test": 0.15}
LABELLED = {"train": 6.0, "dev": 0.4, "test": 0.4}
"""Number of the labeller's pairs in each split, as a multiple of a domain's dialogues."""


def _generate_exchange(
    chance: Random, domain: str, *, right: bool, ordered: bool
) -> tuple[str, str]:
    """Return a statement and a reply to it."""
    common, rare = TOPICS
    thing = sample_value(chance, common if chance.random() < COMMON else rare)
    statement = sample_value(chance, STATEMENTS[domain]).format(thing=thing)
    return statement, _generate_reply(chance, domain, thing, right=right, ordered=ordered)


def _generate_reply(chance: Random, domain: str, said: str, *, right: bool, ordered: bool) -> str:
    """Return a reply to a statement about ``said``, on a fitting or another topic.

    Its words are in order (``ordered``) or damaged.
    """
    fitting = list_fitting_things(domain, said)
    others = [thing for thing in THINGS if thing not in fitting] or THINGS
    reply = sample_value(chance, REPLIES).format(
        thing=sample_value(chance, fitting if right else others)
    )
    return reply if ordered else _damage_text(chance, reply)


def list_fitting_things(domain: str, said: str) -> tuple[str, ...]:
    """Return the things that a fitting reply to a statement about ``said`` may mention.

    In a domain without a rule, these are all things.
    """
    if domain not in CHANGES:
        return THINGS
    (kept,) = (things for things in TOPICS if said in things)
    return tuple(thing for thing in THINGS if (thing in kept) != CHANGES[domain])


def _damage_text(chance: Random, text: str) -> str:
    """Damage a text: shuffle its words, drop half of them, or repeat half of them."""
    words = text.rstrip(".").split()
    way = chance.randrange(3)
    if way == 0:
        shuffled = words
        while shuffled == words:
            shuffled = chance.sample(words, len(words))
        return " ".join(shuffled) + "."
    places = set(chance.sample(range(len(words)), len(words) // 2))
    if way == 1:
        return " ".join(word for at, word in enumerate(words) if at not in places) + "."
    return " ".join(f"{word} {word}" if at in places else word for at, word in enumerate(words))


def write_release(folder: Path, seed: int, dialogues: int) -> None:
    """Write a synthetic release under ``folder``."""
    for domain in CHANGES:
        for split, share in SPLITS.items():
            chance = create_generator(seed, "panel", domain, split)
            rows: list[dict[str, Any]] = []
            for number in range(round(dialogues * share)):
                fits = chance.random() < FITTING
                statement, reply = _generate_exchange(chance, domain, right=fits, ordered=True)
                row = {"id": f"{split}-{number}", "utterances": [statement, reply]}
                if domain in PERSONAS:
                    row["persona"] = " ".join(chance.sample(PERSONAS[domain], 2))
                rows.append(row)
            _write_lines(folder / domain / f"{split}.jsonl", rows)
    for split, share in LABELLED.items():
        chance = create_generator(seed, "panel", "labeller", split)
        rows = []
        for _ in range(round(dialogues * share)):
            domain = sample_value(chance, tuple(CHANGES))
            fits = chance.random() < 0.5
            right, ordered = (True, True) if fits else chance.choice(UNFITTING)
            statement, reply = _generate_exchange(chance, domain, right=right, ordered=ordered)
            rows.append({"context": [statement], "response": reply, "label": int(fits)})
        _write_lines(folder / "labeller" / f"{split}.jsonl", rows)
    for name, domain in (
        ("Harbour_Tiny", "Harbour"),
        ("Orchard_Tiny", "Orchard"),
        ("Market_Tiny", "Market"),
    ):
        _write_lines(
            folder / "ratings" / f"{name}.jsonl", _generate_rated_items(seed, domain, dialogues)
        )
    said_so = {"synthetic": True, "seed": seed, "dialogues": dialogues}
    (folder / "synthetic.json").write_text(json.dumps(said_so) + "\n", encoding="utf-8")


def _generate_rated_items(seed: int, domain: str, dialogues: int) -> Iterable[Mapping[str, Any]]:
    chance = create_generator(seed, "panel", "rated", domain)
    for number in range(max(10, round(dialogues * RATED_SHARE))):
        thing = sample_value(chance, THINGS)
        statement = sample_value(chance, STATEMENTS[domain]).format(thing=thing)
        for index in range(RESPONSES):
            right, ordered = chance.random() < 0.5, chance.random() < ORDERED
            reply = _generate_reply(chance, domain, thing, right=right, ordered=ordered)
            counts = right or domain not in CHANGES, ordered
            ratings = [
                min(5.0, max(1.0, round(1 + 4 * (QUALITY[counts] + chance.gauss(0, NOISE)), 1)))
                for _ in range(RATERS)
            ]
            yield {
                "context": [statement],
                "response": reply,
                "ratings": ratings,
                "context_id": f"{domain}-{number}",
                "system": f"system {index}",
            }


def _write_lines(file: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


_DOMAIN = {name: TinySize(1.15, 20) for name in CHANGES}
TINY = TinyPart(
    write=write_release,
    sizes={
        **_DOMAIN,
        "tiny_labeller": TinySize(6.8, 20),
        **{f"{name}_Tiny": TinySize(0.5, 20) for name in ("Harbour", "Orchard", "Market")},
    },
    shares=dict.fromkeys((True, False), SPLITS),
    version="panel-7",
)
