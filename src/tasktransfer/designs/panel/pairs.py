"""Training pairs: true responses and the paper's perturbations, labelled and balanced (section V).

Each context has its true response and one other. A trained labeller rates all of them; what it is
not sure of goes, and its label replaces the one by construction. Of what is left, as many fitting
as unfitting pairs are taken. Each pair carries how it was made (``query["how"]``).

Not made here: back-translation and DialoGPT's or BlenderBot's responses, which need models that are
not at hand; a user's own come with the release. Mask-and-fill takes words of a random context where
the paper takes an infilling model that reads one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tasktransfer.data.cache import read_instances, read_manifest
from tasktransfer.data.recipes import Ingredients, Split
from tasktransfer.datasets import get_task
from tasktransfer.designs.panel.sources.dataset import (
    CONTEXT,
    FITS,
    FITS_NOT,
    SOURCE_FILES,
    instance_of,
)
from tasktransfer.designs.panel.sources.texts import parted
from tasktransfer.errors import DataError
from tasktransfer.tasks.card import SPLITS, Instance
from tasktransfer.tasks.ratings import share_of

MOST_DROPPED = 0.5
MOST_MASKED = 0.15
"""Shares of a response's tokens."""
DRAWN = " drawn"
"""Ends the id of a test item that trains or validates too."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a perturbation may read: the context, its true response, and others of the corpus."""

    context: tuple[str, ...]
    response: str
    others: Sequence[Instance]
    dialogue: str

    def other(self, chance: random.Random) -> Instance:
        """An instance of another dialogue."""
        for _ in range(100):
            one = chance.choice(self.others)
            if one.dialogue_id != self.dialogue:
                return one
        raise DataError(
            f"{self.dialogue}: is the only dialogue of its corpus, and unfitting responses are "
            "taken from others: give more dialogues"
        )


def drop(given: Given, chance: random.Random) -> str:
    """Leave out up to half of the words."""
    return _dropped(given.response, chance)


def shuffle(given: Given, chance: random.Random) -> str:
    """The same words in another order."""
    return _shuffled(given.response, chance)


def repeat(given: Given, chance: random.Random) -> str:
    """Say up to half of the words twice."""
    return _repeated(given.response, chance)


def random_utterance(given: Given, chance: random.Random) -> str:
    """What was said in another dialogue of the corpus."""
    return given.other(chance).query["response"]


def context_copy(given: Given, chance: random.Random) -> str:
    """An utterance of the context, perturbed."""
    perturb = chance.choice((_dropped, _shuffled, _repeated))
    return perturb(chance.choice(given.context), chance)


def mask_and_fill(given: Given, chance: random.Random) -> str:
    """Put words of a random context in place of up to 15 % of the words, of one at least."""
    words = given.response.split()
    fill = given.other(chance).context.split()
    for place in _places(len(words), MOST_MASKED, chance):
        words[place] = chance.choice([word for word in fill if word != words[place]] or fill)
    return " ".join(words)


PERTURBATIONS: dict[str, Callable[[Given, random.Random], str]] = {
    "drop": drop,
    "shuffle": shuffle,
    "repeat": repeat,
    "random_utterance": random_utterance,
    "context_copy": context_copy,
    "mask_and_fill": mask_and_fill,
}


def _places(count: int, most: float, chance: random.Random) -> list[int]:
    """Distinct places, at least one, and at most this share of them."""
    return sorted(chance.sample(range(count), chance.randint(1, max(1, int(most * count)))))


def _dropped(text: str, chance: random.Random) -> str:
    words = text.split()
    gone = _places(len(words), MOST_DROPPED, chance)
    return " ".join(word for place, word in enumerate(words) if place not in gone)


def _shuffled(text: str, chance: random.Random) -> str:
    words = text.split()
    return " ".join(chance.sample(words, len(words)))


def _repeated(text: str, chance: random.Random) -> str:
    words = text.split()
    twice = _places(len(words), MOST_DROPPED, chance)
    return " ".join(f"{word} {word}" if at in twice else word for at, word in enumerate(words))


# --- the recipe ---------------------------------------------------------------------------------


def training_pairs(ingredients: Ingredients) -> dict[Split, list[Instance]]:
    """Labelled pairs of every domain, and all of them together as ``everything``.

    Settings: ``domains``; ``train`` and ``dev``: pairs asked for, per domain; ``made``: how many
    are made for each that is asked for; ``labels``: of the labeller, given, or as made; ``sure``:
    the least probability of a label; ``seed``; ``everything``, ``labeller`` and ``given``: names of
    their tasks.

    Raises:
        DataError: the labeller is sure of nothing, or says the same of everything.
    """
    (cache,), settings = ingredients.caches, ingredients.settings
    derived: dict[Split, list[Instance]] = {}
    for split in ("train", "dev"):
        together: list[Instance] = []
        for domain in settings["domains"]:
            made, chance = made_pairs(cache, domain, split, settings)
            asked = int(settings[split])
            labelled = labels(made, _probabilities(ingredients, made), settings["sure"])
            report = ingredients.report.setdefault
            for how in dict.fromkeys(one.query["how"] for one in made):
                report(f"{domain} {split} {how}", {}).update(_counts(how, made, labelled))
            refuse_contradiction(made, labelled, f"{domain}, {split}")
            pairs = balanced([one for one in labelled if one], asked, chance, f"{domain}, {split}")
            report(f"{domain} {split}", {}).update(asked=float(asked), pairs=float(len(pairs)))
            derived[domain, split] = pairs
            together += [replace(one, task=settings["everything"]) for one in pairs]
        derived[settings["everything"], split] = together
    for domain in (*settings["domains"], settings["everything"]):
        derived[domain, "test"] = []
    return derived


def made_pairs(
    cache: Path, domain: str, split: str, settings: Mapping[str, Any]
) -> tuple[list[Instance], random.Random]:
    """The pairs of a domain before they are labelled, and the random numbers that follow."""
    chance = random.Random(f"{settings['seed']} {domain} {split}")
    wanted = round(int(settings[split]) * settings["made"])
    return candidates(read_instances(cache, domain, split), wanted, chance), chance


def candidates(instances: Sequence[Instance], wanted: int, chance: random.Random) -> list[Instance]:
    """True responses and perturbed ones in turn, with contexts of one to four utterances."""
    order = list(instances)
    chance.shuffle(order)
    made: list[Instance] = []
    kinds = list(PERTURBATIONS)
    for number, one in enumerate(order[: (wanted + 1) // 2]):
        said = parted(one.context, one.turns)[-chance.randint(1, CONTEXT) :]
        given = Given(said, one.query["response"], instances, one.dialogue_id)
        how = kinds[number % len(kinds)]
        other = PERTURBATIONS[how](given, chance)
        for response, target, way in (
            (given.response, FITS, one.query.get("how", "true")),
            (other, FITS_NOT, how),
        ):
            # Nothing is left of a single word that is dropped, and one alone cannot be shuffled.
            if response.strip() and (target == FITS or response != given.response):
                name = f"{one.id}-{way}"
                made.append(
                    instance_of(one.task, name, one.dialogue_id, said, response, target, how=way)
                )
    return made


def _probabilities(ingredients: Ingredients, made: Sequence[Instance]) -> list[float] | None:
    """How probably each pair fits; None: nobody was asked.

    Raises:
        DataError: the release's labels lack a pair.
    """
    settings = ingredients.settings
    if settings["labels"] == "labeller":
        task = settings["labeller"]
        return ingredients.judges[0](task, [replace(one, task=task) for one in made])
    if settings["labels"] == "made":
        return None
    told = {
        (one.dialogue_id, one.context, one.query["response"]): float(one.target[0])
        for one in read_instances(ingredients.caches[0], settings["given"], "train")
    }
    asked = [(one.task, one.context, one.query["response"]) for one in made]
    missing = [pair for pair in asked if pair not in told]
    if missing:
        domain, context, response = missing[0]
        raise DataError(
            f"probabilities/{domain}.jsonl: no line for {len(missing):,} of {len(made):,} pairs, "
            f"such as context {context!r}, response {response!r}: `tasktransfer pairs` writes all "
            "pairs that are asked about; add their probabilities"
        )
    return [told[pair] for pair in asked]


def labels(
    made: Sequence[Instance], probabilities: Sequence[float] | None, sure: float
) -> list[Instance | None]:
    """Each pair with the label that is more probable; None: it is less than ``sure``. Where nobody
    was asked, what was made to fit fits."""
    if probabilities is None:
        return list(made)
    return [
        replace(one, target=(FITS if p >= 0.5 else FITS_NOT,)) if max(p, 1 - p) >= sure else None
        for one, p in zip(made, probabilities, strict=True)
    ]


def refuse_contradiction(
    made: Sequence[Instance], labelled: Sequence[Instance | None], where: str
) -> None:
    """Refuse labels that are the opposite of how every pair was made.

    Raises:
        DataError: so are these.
    """
    both = [(one, new) for one, new in zip(made, labelled, strict=True) if new is not None]
    if both and all(one.target != new.target for one, new in both):
        raise DataError(
            f"{where}: the labels contradict how each of {len(both)} pairs was made, such as "
            f"{both[0][0].id}, label {both[0][1].target[0]}: 1 has to say that a response fits; "
            "mend the labeller's data or the probabilities that are given"
        )


def balanced(
    pairs: Sequence[Instance], asked: int, chance: random.Random, where: str
) -> list[Instance]:
    """As many fitting as unfitting pairs, ``asked`` of them if there are, in random order.

    Raises:
        DataError: none is left, or all have one label.
    """
    by_label = {
        label: [one for one in pairs if one.target == (label,)] for label in (FITS, FITS_NOT)
    }
    each = min(asked // 2, *map(len, by_label.values()))
    if not pairs:
        raise DataError(
            f"{where}: the labeller is sure of no pair, so none is left: lower pairs.sure, or "
            "train the labeller longer (labeller.epochs)"
        )
    if not each:
        found = next(label for label, some in by_label.items() if some)
        raise DataError(
            f"{where}: all {len(pairs)} pairs that are left have label {found}: two classes are "
            "needed; raise pairs.made, lower pairs.sure, or train the labeller longer"
        )
    chosen = [one for some in by_label.values() for one in chance.sample(some, each)]
    chance.shuffle(chosen)
    return chosen


def _counts(
    how: str, made: Sequence[Instance], labelled: Sequence[Instance | None]
) -> dict[str, float]:
    mine = [(one, new) for one, new in zip(made, labelled, strict=True) if one.query["how"] == how]
    kept = [(one, new) for one, new in mine if new is not None]
    changed = sum(one.target != new.target for one, new in kept)
    return {"made": float(len(mine)), "kept": float(len(kept)), "relabelled": float(changed)}


# --- few ratings, and responses to choose from --------------------------------------------------


def rated_together(ingredients: Ingredients) -> dict[Split, list[Instance]]:
    """The items of all rated sets as one task, each rating as its share of the set's scale.
    Settings: ``sets``; ``task``."""
    (cache,), settings = ingredients.caches, ingredients.settings
    there = read_manifest(cache)
    every: list[Instance] = []
    for name in settings["sets"]:
        if name not in there.tasks:
            raise DataError(f"{cache}: has no {name}; put its file there, or leave it out (rated)")
        card = get_task(there.dataset, name)
        items = read_instances(cache, name, "test")
        if len({one.target for one in items}) < 2:
            raise DataError(
                f"{name}, {SOURCE_FILES[name]}: all {len(items)} items have the mean rating "
                f"{items[0].target[0]}, and nothing correlates with a constant; mend the ratings, "
                "or leave the set out (rated)"
            )
        for one in items:
            share = f"{share_of(card, one.target[0]):.12g}"
            group = f"{name} {one.dialogue_id}"
            every.append(replace(one, task=settings["task"], target=(share,), dialogue_id=group))
    return {(settings["task"], s): every if s == "test" else [] for s in SPLITS}


def few_ratings(ingredients: Ingredients) -> dict[Split, list[Instance]]:
    """K % of a rated set: half trains, half validates; test has all items, as the paper
    scores them (section VI-C), and those that were drawn are marked.
    Settings: ``task``, ``percent``, ``draw``.

    Raises:
        DataError: there are too few items.
    """
    (cache,), settings = ingredients.caches, ingredients.settings
    task = settings["task"]
    items = read_instances(cache, task, "test")
    order = [*range(len(items))]
    random.Random(f"few {task} {settings['draw']}").shuffle(order)
    half = round(len(items) * settings["percent"] / 200)
    if half < 2 or len(items) - 2 * half < 2:
        raise DataError(
            f"{task}: {settings['percent']} % of {len(items)} items are {half} for each half; draw "
            "a share that leaves two or more on each side (few_shot.percent)"
        )
    cuts = {"train": order[:half], "dev": order[half : 2 * half]}
    drawn = {*order[: 2 * half]}
    derived = {(task, split): [items[place] for place in cut] for split, cut in cuts.items()}
    derived[task, "test"] = [
        replace(one, id=f"{one.id}{DRAWN}" if place in drawn else one.id)
        for place, one in enumerate(items)
    ]
    return derived


def response_selection(ingredients: Ingredients) -> dict[Split, list[Instance]]:
    """The true response among others, which are drawn from the same split (VII-D). Training has one
    other response to each true one, test 19. Settings: ``domain``; ``persona``: a key of
    ``PERSONAS``; ``candidates``; ``limit_train`` and ``limit_test``: true responses at most.

    Raises:
        DataError: a split has too few responses to choose from, or no personas.
    """
    (cache,), settings = ingredients.caches, ingredients.settings
    derived: dict[Split, list[Instance]] = {}
    for split in ("train", "dev", "test"):
        chance = random.Random(f"selection {split}")
        every = read_instances(cache, settings["domain"], split)
        others = int(settings["candidates"]) - 1 if split == "test" else 1
        texts = sorted({one.query["response"] for one in every})
        if len(texts) <= others:
            raise DataError(
                f"{settings['domain']}, {split}: {len(texts)} different responses, and "
                f"{others + 1} are needed to choose from; give more dialogues"
            )
        asked = _answers(every, settings, split)
        chance.shuffle(asked)
        limit = settings["limit_test" if split == "test" else "limit_train"]
        derived[settings["task"], split] = [
            made
            for one in (asked if limit is None else asked[: int(limit)])
            for made in _choices(one, texts, others, settings, chance)
        ]
    return derived


PERSONAS = {"none": "", "original": "persona", "revised": "revised"}
"""Setting → what of an instance's query comes before its context."""


def _answers(every: Sequence[Instance], settings: Mapping[str, Any], split: str) -> list[Instance]:
    """The responses that are looked for: of those who were told a persona, where such are, so that
    all settings are asked the same."""
    told = [one for one in every if "persona" in one.query]
    key = PERSONAS[settings["persona"]]
    if key and not any(key in one.query for one in every):
        raise DataError(
            f"{settings['domain']}, {split}: no dialogue has a persona of the setting "
            f"{settings['persona']}; give them, or leave the setting out (selection.personas)"
        )
    return told or list(every)


def _choices(
    one: Instance,
    texts: Sequence[str],
    others: int,
    settings: Mapping[str, Any],
    chance: random.Random,
) -> list[Instance]:
    said = parted(one.context, one.turns)
    persona = one.query.get(PERSONAS[settings["persona"]])
    before = (persona, *said) if persona else said
    true = one.query["response"]
    wrong = [text for text in chance.sample(texts, others + 1) if text != true][:others]
    return [
        instance_of(
            settings["task"],
            f"{one.id}-{place}",
            one.id,
            before,
            text,
            FITS_NOT if place else FITS,
        )
        for place, text in enumerate((true, *wrong))
    ]
