"""Check the recommended method on generated datasets, whose best method is known.

    python -m benchmarks.planted_recommendation [FILE.csv]

Generates 20 datasets of dialogues as bags of words. A label has its own words. Datasets differ in
the number of these words, in how many of them a dialogue has, in label noise, and in the number of
training dialogues. Four methods learn each dataset: the most frequent answer, TF-IDF with logistic
regression, and logistic regression and nearest neighbours on embeddings of a small random encoder.

For each number of test dialogues, prints

- in how many datasets the recommended method is within 1 point of the best method on 2,000
  held-out dialogues, and how many points it loses on average;
- the same for the method with the highest test score;
- how often a method is called significantly worse than another after the test labels were
  permuted (20 times per dataset). No method is then better than another, so each of these claims
  is false.

Takes about two minutes on one core.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from tasktransfer.core.references import CONTRASTIVE, OF_A_MODEL, REFERENCES
from tasktransfer.core.specs import ModelSpec
from tasktransfer.designs.transfer.frames import METHODS
from tasktransfer.designs.transfer.statistics.methods import (
    Cost,
    Method,
    build_method_rows,
    compare_pairs,
    sort_methods,
)
from tasktransfer.evaluation.reference import get_predictor
from tasktransfer.results.store import build_frame
from tasktransfer.stats.cells import NO_SEED, Scored, gather_cells
from tasktransfer.stats.draws import build_dialogue_units, compute_jackknife_scores
from tasktransfer.tasks.card import Instance, MetricSpec, Prompt, Task

WORLDS, PERMUTATIONS = 20, 20
LABELS = ("a", "b", "c", "d")
VOCABULARY = [f"{first}{middle}{last}" for first in "bdfgklmnprst" for middle in "aeiou"
              for last in "bdgklmnprst"]  # fmt: skip
TESTED, HELD_OUT = (50, 200, 1000), 2000
WITHIN = 1.0
"""Largest loss on held-out dialogues, in points, that counts as a good recommendation."""
CARD = Task("label", "L", "Planted", "dialogue_classification", LABELS, (MetricSpec("accuracy"),),
            "", Prompt("", 4), "", "", "")  # fmt: skip

Floats = npt.NDArray[np.float64]
Embed = Callable[[Sequence[str]], Floats]


@dataclass(frozen=True)
class World:
    """Settings of the generated dialogues of a dataset.

    ``words``: number of words of each label. ``signal``: how many of them a dialogue has.
    ``noise``: fraction of labels that are random. ``train``: number of training dialogues.
    """

    number: int
    words: int
    signal: int
    noise: float
    train: int

    def generate(self) -> Iterator[Instance]:
        """Yield dialogues without end."""
        chance = random.Random(self.number)
        words = chance.sample(VOCABULARY, len(VOCABULARY))
        own = [words[index * self.words :][: self.words] for index in range(len(LABELS))]
        rest = words[len(LABELS) * self.words :]
        for number in range(10**9):
            label = chance.randrange(len(LABELS))
            said = chance.choices(own[label], k=self.signal) + chance.choices(rest, k=8)
            chance.shuffle(said)
            if chance.random() < self.noise:
                label = chance.randrange(len(LABELS))
            text, name = " ".join(said), f"d{number:06}"
            yield Instance(
                id=name,
                dialogue_id=name,
                task="label",
                context=text,
                focus=len(text),
                query={},
                options=(),
                target=(LABELS[label],),
            )


def list_worlds() -> list[World]:
    """Return the datasets, from easy to impossible."""
    chance = random.Random(0)
    return [
        World(
            number,
            words=chance.choice([5, 20, 60]),
            signal=chance.choice([1, 2, 3]),
            noise=chance.choice([0.0, 0.2, 0.6]),
            train=chance.choice([60, 200, 600]),
        )
        for number in range(WORLDS)
    ]


def load_embedder(folder: Path) -> Embed:
    """Return a function that embeds texts with a small encoder with random weights."""
    import torch  # noqa: PLC0415  # slow to import

    from tasktransfer.evaluation.features import compute_features  # noqa: PLC0415
    from tasktransfer.training.hardware import Hardware  # noqa: PLC0415
    from tasktransfer.training.tiny import create_model, create_tokenizer  # noqa: PLC0415

    torch.manual_seed(0)
    tokenizer = create_tokenizer("encoder", [" ".join(VOCABULARY)] * 5)
    create_model("encoder", tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    spec, cached = ModelSpec("tiny", "encoder", "tiny", 48), dict[str, Floats]()

    def embed(texts: Sequence[str]) -> Floats:
        fresh = [text for text in texts if text not in cached]
        if fresh:
            vectors = compute_features(folder, folder, spec, fresh, "mean", Hardware())
            cached.update(zip(fresh, vectors, strict=True))
        return np.stack([cached[text] for text in texts])

    return embed


def predict(world: World, embed: Embed) -> tuple[dict[str, npt.NDArray[np.str_]], list[str]]:
    """Return method → predictions of all test and held-out dialogues, and their labels."""
    dialogues = world.generate()
    train = [*islice(dialogues, world.train)]
    test = [*islice(dialogues, max(TESTED) + HELD_OUT)]
    answers = {
        name: get_predictor(name, embed if name in OF_A_MODEL else None)(CARD, train, test, 0)
        for name in REFERENCES
        if name != CONTRASTIVE
    }
    golds = [instance.target[0] for instance in test]
    return {name: np.array([one for (one,) in some]) for name, some in answers.items()}, golds


def gather_methods(is_right: dict[str, npt.NDArray[np.bool_]]) -> list[Method]:
    """Return the methods of a dataset, from the simplest to the most complex.

    Args:
        is_right: method → whether each test dialogue is predicted correctly.
    """
    methods = []
    for name, right in is_right.items():
        units = build_dialogue_units([f"d{number:06}" for number in range(len(right))])
        tally = np.stack([right, np.ones(len(right))], axis=1).astype(np.float64)
        resampled = compute_jackknife_scores(tally, lambda sums: 100 * sums[..., 0] / sums[..., 1])
        scored = Scored(float(100 * right.mean()), resampled, units, "logit")
        cell = gather_cells([((), NO_SEED, scored)])[()]
        methods.append(Method(("Planted", "label"), name, None, None, cell, Cost(0, 0.0)))
    return sort_methods(methods)


def has_difference(methods: Sequence[Method]) -> bool:
    """Return whether any two methods differ significantly."""
    return any(pair.q <= 0.05 for pair in compare_pairs([m.cell for m in methods]).values())


def measure(world: World, embed: Embed) -> Iterator[dict[str, float]]:
    """Yield one row per number of test dialogues."""
    predictions, golds = predict(world, embed)
    labels = np.array(golds)
    right = {name: some == labels for name, some in predictions.items()}
    truth = {name: 100 * float(some[max(TESTED) :].mean()) for name, some in right.items()}
    chance = np.random.default_rng(world.number)
    for size in TESTED:
        methods = gather_methods({name: some[:size] for name, some in right.items()})
        table = build_frame(build_method_rows(methods), METHODS).set_index("method")
        (chosen,), (best,) = table.index[table["recommended"]], table.index[table["is_best"]]
        false_claims = 0
        for _ in range(PERMUTATIONS):
            mixed = chance.permutation(labels[:size])
            permuted = {name: some[:size] == mixed for name, some in predictions.items()}
            false_claims += has_difference(gather_methods(permuted))
        yield {
            "world": world.number,
            "test": size,
            "lost": max(truth.values()) - truth[chosen],
            "lost_by_best": max(truth.values()) - truth[best],
            "claims": has_difference(methods),
            "false_claims": false_claims / PERMUTATIONS,
        }


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row per number of test dialogues, fractions in percent and losses in points."""
    good = rows.assign(
        within=100 * (rows["lost"] <= WITHIN),
        within_by_best=100 * (rows["lost_by_best"] <= WITHIN),
        false_claims=100 * rows["false_claims"],
    )
    columns = ["within", "lost", "within_by_best", "lost_by_best", "false_claims"]
    return good.groupby("test")[columns].mean().round(1).reset_index()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all datasets, print the table, and write it to a file if one is given."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    with tempfile.TemporaryDirectory() as folder:
        embed = load_embedder(Path(folder))
        rows = [row for world in list_worlds() for row in measure(world, embed)]
    table = summarise(pd.DataFrame(rows))
    print(table.to_string(index=False))
    for file in words:
        table.to_csv(file, index=False)


if __name__ == "__main__":
    main()
