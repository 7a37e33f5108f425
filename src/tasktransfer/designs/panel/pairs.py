"""Training pairs: true responses and the paper's perturbations, labelled and balanced (section V).

Each context has its true response and one perturbed response. A trained labeller rates all pairs.
Pairs below the minimum probability are dropped, and the labeller's label replaces the one by
construction. The rest is balanced: as many fitting as unfitting pairs. ``query["how"]`` holds the
origin of each pair's response.

Back-translation and responses by DialoGPT or BlenderBot are not built here, because they need
models that are not available. A release may contain a user's own. Mask-and-fill takes words of a
random context, where the paper uses an infilling model.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tasktransfer.data.cache import read_instances
from tasktransfer.data.recipes import Ingredients, Split
from tasktransfer.data.word_noise import drop_words, repeat_words, replace_words, shuffle_words
from tasktransfer.designs.panel.sources.dataset import CONTEXT
from tasktransfer.designs.panel.sources.pair_instances import FITS, FITS_NOT, make_instance
from tasktransfer.designs.panel.sources.texts import split_context
from tasktransfer.errors import DataError
from tasktransfer.tasks.card import Instance

MOST_MASKED = 0.15
"""Maximum fraction of a response's words that are replaced."""


@dataclass(frozen=True, slots=True)
class PerturbationInput:
    """Input of a perturbation: context, true response, and the other instances of the corpus."""

    context: tuple[str, ...]
    response: str
    others: Sequence[Instance]
    dialogue: str

    def sample_other_instance(self, chance: random.Random) -> Instance:
        """Sample an instance of another dialogue."""
        for _ in range(100):
            drawn = chance.choice(self.others)
            if drawn.dialogue_id != self.dialogue:
                return drawn
        raise DataError(
            f"{self.dialogue}: This dialogue is the only one in its corpus, but unfitting "
            "responses are sampled from other dialogues. Add dialogues."
        )


def drop_response_words(given: PerturbationInput, chance: random.Random) -> str:
    return drop_words(given.response, chance)


def shuffle_response_words(given: PerturbationInput, chance: random.Random) -> str:
    return shuffle_words(given.response, chance)


def repeat_response_words(given: PerturbationInput, chance: random.Random) -> str:
    return repeat_words(given.response, chance)


def sample_response(given: PerturbationInput, chance: random.Random) -> str:
    """Return a response from another dialogue of the corpus."""
    return given.sample_other_instance(chance).query["response"]


def perturb_context_utterance(given: PerturbationInput, chance: random.Random) -> str:
    """Return a perturbed utterance of the context."""
    perturb = chance.choice((drop_words, shuffle_words, repeat_words))
    return perturb(chance.choice(given.context), chance)


def mask_and_fill(given: PerturbationInput, chance: random.Random) -> str:
    """Replace some words of the response by words of a random context."""
    return replace_words(
        given.response, given.sample_other_instance(chance).context.split(), MOST_MASKED, chance
    )


PERTURBATIONS: dict[str, Callable[[PerturbationInput, random.Random], str]] = {
    "drop": drop_response_words,
    "shuffle": shuffle_response_words,
    "repeat": repeat_response_words,
    "random_utterance": sample_response,
    "context_copy": perturb_context_utterance,
    "mask_and_fill": mask_and_fill,
}


# --- the recipe ---------------------------------------------------------------------------------


def build_training_pairs(ingredients: Ingredients) -> dict[Split, list[Instance]]:
    """Return labelled pairs of every domain, and the pairs of all domains as ``everything``.

    Settings:
        domains: the training domains.
        perturbations: keys of ``PERTURBATIONS``.
        train, dev: numbers of requested pairs per domain.
        made: number of pairs to build per requested pair.
        labels: source of labels (labeller, given or made).
        sure: minimum probability of a label.
        seed: seed of the perturbations.
        everything, labeller, given: names of the tasks for all pairs, the labeller, and labels.

    Raises:
        DataError: no label reaches the minimum probability, or all labels are the same.
    """
    (cache,), settings = ingredients.caches, ingredients.settings
    derived: dict[Split, list[Instance]] = {}
    for split in ("train", "dev"):
        together: list[Instance] = []
        for domain in settings["domains"]:
            made, chance = build_pairs(cache, domain, split, settings)
            requested = int(settings[split])
            labelled = label_pairs(made, _get_probabilities(ingredients, made), settings["sure"])
            report = ingredients.report.setdefault
            for how in dict.fromkeys(pair.query["how"] for pair in made):
                report(f"{domain} {split} {how}", {}).update(_count_pairs(how, made, labelled))
            check_labels(made, labelled, f"{domain}, {split}")
            pairs = sample_balanced_pairs(
                [pair for pair in labelled if pair], requested, chance, f"{domain}, {split}"
            )
            report(f"{domain} {split}", {}).update(
                requested=float(requested), pairs=float(len(pairs))
            )
            derived[domain, split] = pairs
            together += [replace(pair, task=settings["everything"]) for pair in pairs]
        derived[settings["everything"], split] = together
    for domain in (*settings["domains"], settings["everything"]):
        derived[domain, "test"] = []
    return derived


def build_pairs(
    cache: Path, domain: str, split: str, settings: Mapping[str, Any]
) -> tuple[list[Instance], random.Random]:
    """Return a domain's pairs before labelling, and the random generator that sampled them."""
    chance = random.Random(f"{settings['seed']} {domain} {split}")
    wanted = round(int(settings[split]) * settings["made"])
    kinds = settings.get("perturbations", tuple(PERTURBATIONS))
    return generate_candidates(read_instances(cache, domain, split), wanted, chance, kinds), chance


def generate_candidates(
    instances: Sequence[Instance],
    wanted: int,
    chance: random.Random,
    kinds: Sequence[str] = tuple(PERTURBATIONS),
) -> list[Instance]:
    """Return candidate pairs, in which true and perturbed responses alternate.

    Contexts have 1 to 4 utterances.
    """
    order = list(instances)
    chance.shuffle(order)
    made: list[Instance] = []
    for number, instance in enumerate(order[: (wanted + 1) // 2]):
        context = split_context(instance.context, instance.turns)[-chance.randint(1, CONTEXT) :]
        given = PerturbationInput(
            context, instance.query["response"], instances, instance.dialogue_id
        )
        how = kinds[number % len(kinds)]
        other = PERTURBATIONS[how](given, chance)
        for response, target, way in (
            (given.response, FITS, instance.query.get("how", "true")),
            (other, FITS_NOT, how),
        ):
            # Dropping the only word leaves nothing, and a single word cannot be shuffled.
            if response.strip() and (target == FITS or response != given.response):
                name = f"{instance.id}-{way}"
                made.append(
                    make_instance(
                        instance.task,
                        name,
                        instance.dialogue_id,
                        context,
                        response,
                        target,
                        how=way,
                    )
                )
    return made


def _get_probabilities(ingredients: Ingredients, made: Sequence[Instance]) -> list[float] | None:
    """Return the probability that each pair fits, or None if pairs keep the labels by construction.

    Raises:
        DataError: a pair is missing from the release's labels.
    """
    settings = ingredients.settings
    if settings["labels"] == "labeller":
        task = settings["labeller"]
        return ingredients.judges[0](task, [replace(row, task=task) for row in made])
    if settings["labels"] == "made":
        return None
    given = {
        (row.dialogue_id, row.context, row.query["response"]): float(row.target[0])
        for row in read_instances(ingredients.caches[0], settings["given"], "train")
    }
    requested = [(row.task, row.context, row.query["response"]) for row in made]
    missing = [pair for pair in requested if pair not in given]
    if missing:
        domain, context, response = missing[0]
        raise DataError(
            f"probabilities/{domain}.jsonl: The file lacks {len(missing):,} of {len(made):,} "
            f"pairs, for example the pair of the context {context!r} and the response "
            f"{response!r}. Run `tasktransfer pairs` to list all pairs that need labels, and add "
            "their probabilities."
        )
    return [given[pair] for pair in requested]


def label_pairs(
    made: Sequence[Instance], probabilities: Sequence[float] | None, sure: float
) -> list[Instance | None]:
    """Label each pair by its probability, or with None if the probability is below ``sure``.

    Without probabilities, pairs keep the label by construction.
    """
    if probabilities is None:
        return list(made)
    return [
        replace(pair, target=(FITS if p >= 0.5 else FITS_NOT,)) if max(p, 1 - p) >= sure else None
        for pair, p in zip(made, probabilities, strict=True)
    ]


def check_labels(made: Sequence[Instance], labelled: Sequence[Instance | None], where: str) -> None:
    """Raise if every label is the opposite of the label by construction.

    Raises:
        DataError: every label is the opposite of the label by construction.
    """
    both = [(pair, new) for pair, new in zip(made, labelled, strict=True) if new is not None]
    if both and all(pair.target != new.target for pair, new in both):
        raise DataError(
            f"{where}: All {len(both)} labels are the opposite of the labels by construction, for "
            f"example label {both[0][1].target[0]} for {both[0][0].id}. Label 1 must mean that a "
            "response fits. Correct the labeller's data or the given probabilities."
        )


def sample_balanced_pairs(
    pairs: Sequence[Instance], requested: int, chance: random.Random, where: str
) -> list[Instance]:
    """Sample equally many fitting and unfitting pairs, at most ``requested``, in random order.

    Raises:
        DataError: there are no pairs, or all have the same label.
    """
    by_label = {
        label: [pair for pair in pairs if pair.target == (label,)] for label in (FITS, FITS_NOT)
    }
    each = min(requested // 2, *map(len, by_label.values()))
    if not pairs:
        raise DataError(
            f"{where}: No label reaches the probability pairs.min_probability, so no pair is "
            "left. Lower pairs.min_probability, or train the labeller longer "
            "(labeller.epochs)."
        )
    if not each:
        found = next(label for label, some in by_label.items() if some)
        raise DataError(
            f"{where}: All {len(pairs)} remaining pairs have label {found}, but two classes "
            "are needed. Raise pairs.candidates_per_pair, lower pairs.min_probability, or "
            "train the labeller longer."
        )
    chosen = [pair for some in by_label.values() for pair in chance.sample(some, each)]
    chance.shuffle(chosen)
    return chosen


def _count_pairs(
    how: str, made: Sequence[Instance], labelled: Sequence[Instance | None]
) -> dict[str, float]:
    mine = [
        (pair, new) for pair, new in zip(made, labelled, strict=True) if pair.query["how"] == how
    ]
    kept = [(pair, new) for pair, new in mine if new is not None]
    changed = sum(pair.target != new.target for pair, new in kept)
    return {"made": float(len(mine)), "kept": float(len(kept)), "relabelled": float(changed)}
