"""A race between sources: all pairs with few seeds, the better ones with more.

Each round is a choice of its own (ADR 0028), made once from dev scores of the runs so far: of every
target the best share of its sources goes on, per dataset, model and algorithm. A seed that chose is
no independent witness of what it chose: whoever tells how good a kept pair is tells the seeds that
came after the last choice apart (``fresh``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from tasktransfer.config.fields import LIST, Count, Section
from tasktransfer.core.plan import choice_file
from tasktransfer.errors import RecordError
from tasktransfer.results.choices import read_choice

Cell = tuple[str, str, str, str, str]
"""Dataset, model, algorithm, source, target."""
NAMES = ("dataset", "model", "algorithm", "source", "target")


NO_INTERVAL = "left the race"
"""Why a pair that left has no interval."""
LEFT_LABEL = f"{NO_INTERVAL}: of fewer seeds, which chose; no interval"
"""What the hatching of such cells means."""

Share = Annotated[float, Field(gt=0, lt=1)]


class RacingConfig(Section):
    """Rounds of a race between the sources of a target."""

    seeds: Annotated[tuple[Count, ...], LIST, Field(min_length=2)] = Field(
        description="how many of the study's seeds are run by the end of each round, rising"
    )
    keep: Annotated[tuple[Share, ...], LIST, Field(min_length=1)] = Field(
        description="share of a target's sources that goes on after each round but the last, by dev"
    )

    @model_validator(mode="after")
    def _rounds_fit(self) -> Self:
        if list(self.seeds) != sorted(set(self.seeds)):
            raise ValueError(f"seeds: found {list(self.seeds)}, expected numbers that rise")
        if len(self.keep) != len(self.seeds) - 1:
            raise ValueError(
                f"keep: found {len(self.keep)} shares for {len(self.seeds)} rounds: give one for "
                "each round but the last"
            )
        return self


@dataclass(frozen=True)
class Race:
    """How far a race is. ``seeds``: of each round, all so far; ``kept``: the pairs that went on
    after each round that is over."""

    seeds: tuple[tuple[int, ...], ...]
    kept: tuple[frozenset[Cell], ...] = ()

    @property
    def seeds_now(self) -> tuple[int, ...]:
        """The seeds of the round that runs."""
        return self.seeds[len(self.kept)]

    @property
    def fresh(self) -> tuple[int, ...]:
        """The seeds that no choice was made from."""
        before = self.seeds[len(self.kept) - 1] if self.kept else ()
        return tuple(seed for seed in self.seeds_now if seed not in before)

    def runs(self, cell: Cell, seed: int) -> bool:
        """Whether a pair is run with a seed, as far as is chosen."""
        first = next(number for number, seeds in enumerate(self.seeds) if seed in seeds)
        return first == 0 or (first <= len(self.kept) and cell in self.kept[first - 1])

    def before(self, rounds: int) -> Race:
        """The race when so many rounds were over."""
        return Race(self.seeds, self.kept[:rounds])


def race_of(racing: RacingConfig, seeds: Sequence[int], results: str) -> Race:
    """The race as far as its choices are made.

    Raises:
        RecordError: the file of a choice is damaged.
    """
    rounds = tuple(tuple(seeds[:count]) for count in racing.seeds)
    kept: list[frozenset[Cell]] = []
    for number in range(1, len(rounds)):
        written = read_choice(results, choice_name(number))
        if written is None:
            break
        try:
            kept.append(frozenset(tuple(row[name] for name in NAMES) for row in written))
        except (KeyError, TypeError) as error:
            path = Path(results, choice_file(choice_name(number)))
            raise RecordError(
                f"{path}: damaged ({error!r}); delete it, it is made again"
            ) from error
    return Race(rounds, tuple(kept))


def choice_name(number: int) -> str:
    """The choice after a round, from 1."""
    return f"race_{number}"


def go_on(dev: Mapping[Cell, float], share: float, sources: Mapping[Cell, int]) -> list[Cell]:
    """The pairs that go on, best first: of each target so many of its sources as the share comes
    to, rounded, and at least one. Equal scores in the order of names.

    Args:
        dev: of the pairs that are still in the race, the mean dev score.
        sources: of each of them, how many of its target are still in the race.
    """
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in sorted(dev, key=lambda pair: (-round(dev[pair], 9), pair)):
        groups.setdefault((*cell[:3], cell[4]), []).append(cell)
    return [cell for of in groups.values() for cell in of[: count_kept(sources[of[0]], share)]]


def count_kept(sources: int, share: float) -> int:
    return max(1, int(sources * share + 0.5))


def runs_with_race(racing: RacingConfig, sources: Iterable[int]) -> int:
    """Transfers that a race comes to. ``sources``: of each target, how many."""
    total = 0
    for of_target in sources:
        left, before = of_target, 0
        for seeds, share in zip(racing.seeds, (*racing.keep, 1.0), strict=True):
            total += left * (seeds - before)
            left, before = count_kept(left, share), seeds
    return total
