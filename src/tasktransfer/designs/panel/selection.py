"""Recipe of the data for response selection, the true response among candidates (VII-D)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from tasktransfer.data.cache import read_instances
from tasktransfer.data.recipes import Ingredients, Split
from tasktransfer.designs.panel.sources.pair_instances import FITS, FITS_NOT, make_instance
from tasktransfer.designs.panel.sources.texts import split_context
from tasktransfer.errors import DataError
from tasktransfer.tasks.card import Instance


def build_selection_choices(ingredients: Ingredients) -> dict[Split, list[Instance]]:
    """Combine each true response with wrong responses from the same split.

    Training and dev have one wrong response per true one, test has ``candidates`` - 1.

    Settings:
        domain: domain of the dialogues.
        persona: a key of ``PERSONAS``.
        candidates: number of candidates in the test split.
        limit_train, limit_test: maximum number of true responses.

    Raises:
        DataError: a split has too few responses, or no personas.
    """
    (cache,), settings = ingredients.caches, ingredients.settings
    derived: dict[Split, list[Instance]] = {}
    for split in ("train", "dev", "test"):
        chance = random.Random(f"selection {split}")
        every = read_instances(cache, settings["domain"], split)
        others = int(settings["candidates"]) - 1 if split == "test" else 1
        texts = sorted({instance.query["response"] for instance in every})
        if len(texts) <= others:
            raise DataError(
                f"{settings['domain']}, {split}: There are {len(texts)} different responses, "
                f"but {others + 1} candidates are needed. Add dialogues, or lower "
                "selection.candidates."
            )
        answers = _select_answers(every, settings, split)
        chance.shuffle(answers)
        limit = settings["limit_test" if split == "test" else "limit_train"]
        derived[settings["task"], split] = [
            made
            for instance in (answers if limit is None else answers[: int(limit)])
            for made in _make_choices(instance, texts, others, settings, chance)
        ]
    return derived


PERSONAS = {"none": "", "original": "persona", "revised": "revised"}
"""Setting → key of the instance's query whose text is put before the context."""


def _select_answers(
    every: Sequence[Instance], settings: Mapping[str, Any], split: str
) -> list[Instance]:
    """Return the response-selection instances with the true responses.

    If speakers have personas, only their responses are used, so that all settings have the same
    instances.
    """
    with_persona = [instance for instance in every if "persona" in instance.query]
    key = PERSONAS[settings["persona"]]
    if key and not any(key in instance.query for instance in every):
        raise DataError(
            f"{settings['domain']}, {split}: No dialogue has a persona for the setting "
            f"{settings['persona']}. Add personas, or remove the setting from "
            "selection.personas."
        )
    return with_persona or list(every)


def _make_choices(
    instance: Instance,
    texts: Sequence[str],
    others: int,
    settings: Mapping[str, Any],
    chance: random.Random,
) -> list[Instance]:
    turns = split_context(instance.context, instance.turns)
    persona = instance.query.get(PERSONAS[settings["persona"]])
    before = (persona, *turns) if persona else turns
    true = instance.query["response"]
    wrong = [text for text in chance.sample(texts, others + 1) if text != true][:others]
    return [
        make_instance(
            settings["task"],
            f"{instance.id}-{index}",
            instance.id,
            before,
            text,
            FITS_NOT if index else FITS,
        )
        for index, text in enumerate((true, *wrong))
    ]
