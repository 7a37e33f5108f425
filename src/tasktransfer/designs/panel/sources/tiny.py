"""A tiny world of three domains by grammar, and of rated sets with planted quality.

A statement is about a thing, and things are of four kinds. The fitting reply is about a thing of
the kind that the domain's own rule leads to: so no domain's expert can rate another domain's
replies, whose statements are made of the same things. Whether words are in order is the same
everywhere, and all that counts in the domain that nobody was trained on. Utterances have five words
at most: none is long enough to be a leak.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from tasktransfer.datasets.dailydialog.tiny_words import MOOD_WORDS, NEUTRAL_OPENERS
from tasktransfer.datasets.dataset import TinyPart, TinySize
from tasktransfer.datasets.feta.tiny_world.draws import pick, stream

THINGS = tuple(words.common for words in MOOD_WORDS.values())
RULES = {"Harbour": 0, "Orchard": 1, "Workshop": 2, "Market": 0}
"""Domain → how many kinds further the reply's thing is."""
STATEMENTS = {
    "Harbour": ("I saw the {thing} today.", "They talked about the {thing}."),
    "Orchard": ("Look at that {thing} there.", "You know that {thing} well."),
    "Workshop": ("Where is the {thing} now?", "Here is your {thing} again."),
    "Market": ("I saw that {thing} well.", "They know the {thing} there."),
}
REPLIES = ("We leave the {thing} home.", "She comes with that {thing}.")

QUALITY = {(True, True): 0.95, (True, False): 0.3, (False, True): 0.25, (False, False): 0.05}
"""(about the right kind, words in order) → planted quality, 0 to 1."""
NOISE = 0.12
RATERS = 3
RESPONSES = 4
RATED_SHARE = 0.12
"""Contexts of a rated set, as a share of a domain's dialogues."""


def _statement(chance: Random, domain: str) -> tuple[list[str], int]:
    kind = chance.randrange(len(THINGS))
    said = [pick(chance, STATEMENTS[domain]).format(thing=pick(chance, THINGS[kind]))]
    if chance.random() < 0.3:
        said.insert(0, pick(chance, NEUTRAL_OPENERS))
    return said, kind


def _reply(chance: Random, domain: str, kind: int, *, right: bool, ordered: bool) -> str:
    wanted = (kind + RULES[domain]) % len(THINGS)
    others = [other for other in range(len(THINGS)) if other != wanted]
    about = wanted if right else chance.choice(others)
    text = pick(chance, REPLIES).format(thing=pick(chance, THINGS[about]))
    return text if ordered else _damaged(chance, text)


def _damaged(chance: Random, text: str) -> str:
    """Shuffled, or with words left out or said twice."""
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


def write(folder: Path, seed: int, dialogues: int) -> None:
    """Write a release under ``folder``."""
    domains = [domain for domain in RULES if domain != "Market"]
    for domain in domains:
        for split, share in (("train", 0.8), ("dev", 0.2)):
            chance = stream(seed, "panel", domain, split)
            rows = []
            for number in range(round(dialogues * share)):
                said, kind = _statement(chance, domain)
                reply = _reply(chance, domain, kind, right=True, ordered=True)
                rows.append({"id": f"{split}-{number}", "utterances": [*said, reply]})
            _write(folder / domain / f"{split}.jsonl", rows)
    for split, share in (("train", 2.4), ("dev", 0.3), ("test", 0.3)):
        chance = stream(seed, "panel", "labeller", split)
        rows = []
        for number in range(round(dialogues * share)):
            domain = domains[number % len(domains)]
            said, kind = _statement(chance, domain)
            fits = chance.random() < 0.5
            right, ordered = (True, True) if fits else chance.choice(((False, True), (True, False)))
            reply = _reply(chance, domain, kind, right=right, ordered=ordered)
            rows.append({"context": said, "response": reply, "label": int(fits)})
        _write(folder / "labeller" / f"{split}.jsonl", rows)
    for name, domain in (
        ("Harbour_Tiny", "Harbour"),
        ("Orchard_Tiny", "Orchard"),
        ("Market_Tiny", "Market"),
    ):
        _write(folder / "ratings" / f"{name}.jsonl", _rated(seed, domain, dialogues))
    said_so = {"synthetic": True, "seed": seed, "dialogues": dialogues}
    (folder / "synthetic.json").write_text(json.dumps(said_so) + "\n", encoding="utf-8")


def _rated(seed: int, domain: str, dialogues: int) -> Iterable[Mapping[str, Any]]:
    chance = stream(seed, "panel", "rated", domain)
    for number in range(max(10, round(dialogues * RATED_SHARE))):
        said, kind = _statement(chance, domain)
        for place in range(RESPONSES):
            right, ordered = chance.random() < 0.5, chance.random() < 0.5
            reply = _reply(chance, domain, kind, right=right, ordered=ordered)
            counts = (True if domain == "Market" else right), ordered
            ratings = [
                min(5.0, max(1.0, round(1 + 4 * (QUALITY[counts] + chance.gauss(0, NOISE)), 1)))
                for _ in range(RATERS)
            ]
            yield {
                "context": said,
                "response": reply,
                "ratings": ratings,
                "context_id": f"{domain}-{number}",
                "system": f"system {place}",
            }


def _write(file: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


_DOMAIN = {name: TinySize(1.15, 20) for name in ("Harbour", "Orchard", "Workshop")}
_SHARES = {"train": 0.8, "dev": 0.2, "test": 0.0}
TINY = TinyPart(
    write=write,
    sizes={
        **_DOMAIN,
        "tiny_labeller": TinySize(3.0, 20),
        **{f"{name}_Tiny": TinySize(0.5, 20) for name in ("Harbour", "Orchard", "Market")},
    },
    shares=dict.fromkeys((True, False), _SHARES),
    version="panel-1",
)
