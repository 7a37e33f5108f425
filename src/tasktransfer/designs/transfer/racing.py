"""Race between sources: all pairs get a few seeds, and the better ones get more.

Each round ends with one selection (ADR 0028), made once from the dev scores of the runs so far. Per
dataset, model, algorithm and target, the best fraction of the sources continues. Seeds that made a
selection are not independent evidence for it, so statistics of kept pairs use only the seeds after
the last selection (``fresh``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from tasktransfer.config.fields import LIST, Count, Section
from tasktransfer.core.plan import get_relative_choice_path
from tasktransfer.errors import RecordError
from tasktransfer.results.planned_study import read_choice

Cell = tuple[str, str, str, str, str]
"""Dataset, model, algorithm, source, target."""
NAMES = ("dataset", "model", "algorithm", "source", "target")


NO_INTERVAL = "left the race"
"""Reason why a pair that left has no interval."""
LEFT_LABEL = f"{NO_INTERVAL}: has fewer seeds, which chose the pairs, and no interval"
"""Legend label of the hatching for these cells."""

Share = Annotated[float, Field(gt=0, lt=1)]


class RacingConfig(Section):
    """Rounds of a race between the sources of a target."""

    seeds: Annotated[tuple[Count, ...], LIST, Field(min_length=2)] = Field(
        description=(
            "cumulative number of seeds that are trained by the end of each round, in increasing "
            "order"
        )
    )
    keep: Annotated[tuple[Share, ...], LIST, Field(min_length=1)] = Field(
        description=(
            "fraction of a target's remaining sources that is kept after each round except the "
            "last; the sources with the best dev scores are kept"
        )
    )

    @model_validator(mode="after")
    def _check_rounds(self) -> Self:
        if list(self.seeds) != sorted(set(self.seeds)):
            raise ValueError(
                f"The numbers of seeds {list(self.seeds)} must increase from round to round. Sort "
                "the numbers, and remove duplicates."
            )
        if len(self.keep) != len(self.seeds) - 1:
            raise ValueError(
                f"The key keep has {len(self.keep)} fractions for {len(self.seeds)} rounds. Give "
                "one fraction for each round except the last."
            )
        return self


@dataclass(frozen=True)
class Race:
    """State of a race.

    Attributes:
        seeds: seeds up to and including each round.
        kept: pairs that continued after each finished round.
    """

    seeds: tuple[tuple[int, ...], ...]
    kept: tuple[frozenset[Cell], ...] = ()

    @property
    def current_seeds(self) -> tuple[int, ...]:
        """Seeds of the current round."""
        return self.seeds[len(self.kept)]

    @property
    def fresh_seeds(self) -> tuple[int, ...]:
        """Seeds of the current round that no selection has used."""
        before = self.seeds[len(self.kept) - 1] if self.kept else ()
        return tuple(seed for seed in self.current_seeds if seed not in before)

    def includes(self, cell: Cell, seed: int) -> bool:
        """Return whether a pair is trained with a seed, according to the selections so far."""
        first = next(number for number, seeds in enumerate(self.seeds) if seed in seeds)
        return first == 0 or (first <= len(self.kept) and cell in self.kept[first - 1])

    def rewind(self, rounds: int) -> Race:
        """Return the state of the race after a number of finished rounds."""
        return Race(self.seeds, self.kept[:rounds])


def read_race(racing: RacingConfig | None, seeds: Sequence[int], results: str) -> Race | None:
    """Return the race with all selections made so far, or None for a study without a race.

    Raises:
        RecordError: the file of a selection is damaged.
    """
    if racing is None:
        return None
    rounds = tuple(tuple(seeds[:count]) for count in racing.seeds)
    kept: list[frozenset[Cell]] = []
    for number in range(1, len(rounds)):
        written = read_choice(results, format_choice_name(number))
        if written is None:
            break
        try:
            kept.append(frozenset(tuple(row[name] for name in NAMES) for row in written))
        except (KeyError, TypeError) as error:
            path = Path(results, get_relative_choice_path(format_choice_name(number)))
            raise RecordError(
                f"{path}: The file is damaged ({error!r}). Delete the file to create it again."
            ) from error
    return Race(rounds, tuple(kept))


def format_choice_name(number: int) -> str:
    """Return the name of the selection after a round, counted from 1."""
    return f"race_{number}"


def select_continuing_pairs(
    dev: Mapping[Cell, float], share: float, sources: Mapping[Cell, int]
) -> list[Cell]:
    """Return the pairs that continue to the next round, best first.

    Each target keeps the given fraction of its sources, rounded, and at least one. Ties are in the
    order of names.

    Args:
        dev: mean dev scores of the pairs that are still in the race.
        sources: for each of these pairs, the number of its target's sources still in the race.
    """
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in sorted(dev, key=lambda pair: (-round(dev[pair], 9), pair)):
        groups.setdefault((*cell[:3], cell[4]), []).append(cell)
    return [
        cell
        for group in groups.values()
        for cell in group[: count_continuing_sources(sources[group[0]], share)]
    ]


def count_continuing_sources(sources: int, share: float) -> int:
    """Return the number of a target's sources that continue: a fraction, and at least one."""
    return max(1, int(sources * share + 0.5))


def count_transfers(racing: RacingConfig, sources: Iterable[int]) -> int:
    """Return the total number of transfers in a race, given the numbers of sources per target."""
    total = 0
    for of_target in sources:
        left, before = of_target, 0
        for seeds, share in zip(racing.seeds, (*racing.keep, 1.0), strict=True):
            total += left * (seeds - before)
            left, before = count_continuing_sources(left, share), seeds
    return total
