"""Choices that a study makes once from its results (ADR 0028), and that later runs read.

Learned targets (``check_baselines``)
    A transfer to a task that the model cannot learn shows nothing. So the study first trains the
    baselines of its targets, and fits the references on the same instances. Then it compares both
    on the dev split, and plans the transfers to those targets whose baseline is better. The test
    split is not read.
Race between sources (``racing``)
    All pairs get a few seeds, and the better ones get more. Each round ends with one selection,
    made from the dev scores of the runs so far. Per dataset, model, algorithm and target, the best
    fraction of the sources continues. Seeds that made a selection are not independent evidence for
    it, so statistics of kept pairs use only the seeds after the last selection (``fresh``).
Sources of multi-source runs (``multi_source.mode: auto``)
    Targets with the sources that a split's scores or a selector chose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, TypedDict, TypeVar

from pydantic import Field, model_validator

from tasktransfer.config.fields import LIST, Count, Section
from tasktransfer.core.nodes import Fit, Stage
from tasktransfer.core.plan import get_relative_choice_path
from tasktransfer.core.references import FROZEN, MOST_FREQUENT, NEAREST, REFERENCES, SVM, TFIDF
from tasktransfer.core.runs import Run
from tasktransfer.datasets import DATASETS, resolve_task
from tasktransfer.designs.transfer.runs import BASELINE, RunName, is_check
from tasktransfer.errors import RecordError
from tasktransfer.results.planned_study import read_choice
from tasktransfer.selection.selector import ChooseBy

if TYPE_CHECKING:
    from tasktransfer.designs.transfer.config import TransferConfig

_Row = TypeVar("_Row")


def _read_rows(
    results: str | Path, name: str, parse: Callable[[Mapping[str, Any]], _Row]
) -> list[_Row] | None:
    """Read the rows of a choice, or return None if it is pending.

    Raises:
        RecordError: the file is damaged.
    """
    written = read_choice(results, name)
    if written is None:
        return None
    try:
        return [parse(row) for row in written]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RecordError(
            f"{Path(results, get_relative_choice_path(name))}: The file is damaged ({error!r}). "
            "Delete the file, and run the study again to repeat the selection."
        ) from error


# --- learned targets ---


LEARNED_TARGETS = "learned_targets"
"""Name of the choice (``core.plan.Choice``)."""

COMPARED = (MOST_FREQUENT, TFIDF, SVM, FROZEN, NEAREST)
"""References that baselines are compared with, if the study has them. Each takes seconds."""

TargetName = tuple[str, str, str]
"""Dataset, model and target."""


class CheckedTarget(TypedDict):
    """A target's baseline and its best reference on the dev split.

    ``dev_score`` is the mean over seeds. ``learned`` is true if it is above
    ``reference_dev_score``, or if no reference of the study predicts tasks of this kind.
    ``baselines`` has the digests of the compared baselines; empty in files of older versions.
    """

    dataset: str
    model: str
    target: str
    dev_score: float
    reference: str | None
    reference_dev_score: float | None
    learned: bool
    baselines: list[str]


def read_checked_targets(results: str | Path) -> list[CheckedTarget] | None:
    """Read the targets that passed the baseline check, or None if the check is pending.

    Raises:
        RecordError: the file is damaged.
    """
    return _read_rows(results, LEARNED_TARGETS, _parse_checked_target)


def _parse_checked_target(row: Mapping[str, Any]) -> CheckedTarget:
    return {
        "dataset": str(row["dataset"]),
        "model": str(row["model"]),
        "target": str(row["target"]),
        "dev_score": float(row["dev_score"]),
        "reference": row["reference"],
        "reference_dev_score": row["reference_dev_score"],
        "learned": bool(row["learned"]),
        "baselines": [str(digest) for digest in row.get("baselines", ())],
    }


def list_learned_targets(checked: Iterable[CheckedTarget]) -> frozenset[TargetName]:
    """Return the targets whose baselines are better than every reference on dev."""
    return frozenset(
        (row["dataset"], row["model"], row["target"]) for row in checked if row["learned"]
    )


def select_run_names(
    names: Sequence[RunName], config: TransferConfig, learned: frozenset[TargetName]
) -> list[RunName]:
    """Return the names of a study's runs, without targets whose baselines have not learned.

    The baseline of a task that only serves as a source is left out, too, if no transfer uses it.

    Args:
        names: all runs of the study.
        learned: targets whose transfers and controls are kept. Other targets keep only their
            baselines.
    """
    kept = [name for name in names if name[2] == BASELINE or (name[0], name[1], name[4]) in learned]
    used = {
        (*resolve_task(dataset, source), model)
        for dataset, model, _, sources, _, _ in kept
        for source in sources
    }
    pairs = [(dataset.name, pair) for dataset in config.datasets for pair in dataset.pairs]
    targets = {(dataset, target) for dataset, (_, target) in pairs}
    sources = {resolve_task(dataset, source) for dataset, (source, _) in pairs} - targets
    return [
        name
        for name in kept
        if name[2] != BASELINE
        or (name[0], name[4]) not in sources
        or (name[0], name[4], name[1]) in used
    ]


def group_targets_by_dataset(config: TransferConfig) -> dict[str, list[str]]:
    """Map each dataset to the targets of its pairs, in the order of the config."""
    return {
        dataset.name: list(dict.fromkeys(target for _, target in dataset.pairs))
        for dataset in config.datasets
        if dataset.pairs
    }


def list_compared_nodes(
    runs: Iterable[Run], targets: Mapping[str, Sequence[str]]
) -> tuple[Stage | Fit, ...]:
    """Return the baselines and references whose dev scores are compared.

    ``targets`` maps each dataset to its target tasks.
    """
    found: dict[str, Stage | Fit] = {}
    for run in runs:
        about = run.about
        if is_check(run) or (
            run.method == BASELINE and about["target"] in targets.get(about["dataset"], ())
        ):
            for node in run.judged:
                assert isinstance(node, (Stage, Fit))
                found[node.digest] = node
    return tuple(found.values())


def describe_skipped_targets(checked: Sequence[CheckedTarget]) -> Iterator[str]:
    """Yield a sentence for each target for which transfer runs are skipped."""
    has_models = len({row["model"] for row in checked}) > 1
    for row in checked:
        if not row["learned"] and row["reference"] is not None:
            model = f" with {row['model']}" if has_models else ""
            yield (
                f"Transfers to {row['dataset']}/{row['target']}{model} are not trained, because "
                "its baseline is not better than a simple reference on the dev split (baseline "
                f"{row['dev_score']:.1f}, {REFERENCES[row['reference']]} "
                f"{row['reference_dev_score']:.1f}). To train the transfers anyway, set "
                "check_baselines: false."
            )


# --- race between sources ---


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
        pairs = _read_rows(results, format_choice_name(number), _parse_cell)
        if pairs is None:
            break
        kept.append(frozenset(pairs))
    return Race(rounds, tuple(kept))


def _parse_cell(row: Mapping[str, Any]) -> Cell:
    return row["dataset"], row["model"], row["algorithm"], row["source"], row["target"]


def format_choice_name(number: int) -> str:
    """Return the name of the selection after a round, counted from 1."""
    return f"race_{number}"


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


# --- sources of multi-source runs ---


SELECTION = "selection"
"""Name of the selection (``core.plan.Choice``)."""


@dataclass(frozen=True, slots=True)
class MultiSource:
    """A target with all sources on which one run trains (paper, section 6.2).

    ``chosen_by`` is the split whose scores chose it, or a selector. It is None if the config lists
    the target, or if an earlier version, which only supported the test split, chose it.
    """

    dataset: str
    target: str
    sources: tuple[str, ...]
    chosen_by: ChooseBy | None = None


def read_selection(config: TransferConfig) -> tuple[MultiSource, ...] | None:
    """Read the sources that the mode ``auto`` selected, or return None before the selection.

    Raises:
        RecordError: the file is damaged, or does not match the config.
    """
    picked = _read_rows(config.results, SELECTION, _parse_multi_source)
    if picked is None:
        return None
    contradiction = _find_contradiction(config, picked)
    if contradiction:
        path = Path(config.results, get_relative_choice_path(SELECTION))
        raise RecordError(
            f"{path}: {contradiction}. Delete the file to repeat the selection, or restore "
            "multi_source in the config."
        )
    return tuple(picked)


def _parse_multi_source(row: Mapping[str, Any]) -> MultiSource:
    chooser = _parse_chooser(row.get("chosen_by"))
    return MultiSource(row["dataset"], row["target"], tuple(row["sources"]), chooser)


def _parse_chooser(value: object) -> ChooseBy | None:
    if value is None or isinstance(value, str):
        return value
    raise ValueError(f"the value of chosen_by is {value!r}, but it must be dev, test or a selector")


def _find_contradiction(config: TransferConfig, picked: Sequence[MultiSource]) -> str | None:
    """Describe a contradiction between the selection and the config, or return None."""
    section = config.multi_source
    for dataset in config.datasets:
        targets = [item for item in picked if item.dataset == dataset.name]
        if len(targets) != section.targets_per_dataset:
            return (
                f"The file has {len(targets)} targets of {dataset.name}, but "
                f"multi_source.targets_per_dataset is {section.targets_per_dataset}"
            )
        for item in targets:
            if item.chosen_by not in (None, section.choose_by):
                return (
                    f"The target {item.target} was chosen by {item.chosen_by}, but "
                    f"multi_source.choose_by is {section.choose_by}"
                )
            if len(item.sources) != section.sources_per_target:
                return (
                    f"The target {item.target} has {len(item.sources)} sources, but "
                    f"multi_source.sources_per_target is {section.sources_per_target}"
                )
            others = {item.target, *item.sources} - set(DATASETS[dataset.name].tasks)
            if others:
                return f"{dataset.name} does not have the tasks {', '.join(sorted(others))}"
    return None
