"""Check of baselines before any source is trained: ``check_baselines``.

A transfer to a task that the model cannot learn shows nothing. So the study first trains the
baselines of its targets, and fits the references on the same instances. Then it compares both on
the dev split, and plans the transfers to those targets whose baseline is better. The test split is
not read. The result is a choice (ADR 0028): it is made once, and later results do not change it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from tasktransfer.core.nodes import Fit, Stage
from tasktransfer.core.plan import get_relative_choice_path
from tasktransfer.core.references import FROZEN, MOST_FREQUENT, NEAREST, REFERENCES, TFIDF
from tasktransfer.core.runs import Run
from tasktransfer.datasets import resolve_task
from tasktransfer.designs.transfer.config import TransferConfig
from tasktransfer.designs.transfer.runs import BASELINE, RunName, is_check
from tasktransfer.errors import RecordError
from tasktransfer.results.planned_study import read_choice

LEARNED_TARGETS = "learned_targets"
"""Name of the choice (``core.plan.Choice``)."""

COMPARED = (MOST_FREQUENT, TFIDF, FROZEN, NEAREST)
"""References that baselines are compared with, if the study has them. Each takes seconds."""

Target = tuple[str, str, str]
"""Dataset, model and target."""


class CheckedTarget(TypedDict):
    """A target's baseline and its best reference on the dev split.

    ``dev_score`` is the mean over seeds. ``learned`` is true if it is above
    ``reference_dev_score``, or if no reference of the study predicts tasks of this kind.
    """

    dataset: str
    model: str
    target: str
    dev_score: float
    reference: str | None
    reference_dev_score: float | None
    learned: bool


def read_checked_targets(results: str | Path) -> list[CheckedTarget] | None:
    """Read the targets that passed the baseline check, or None if the check is pending.

    Raises:
        RecordError: the file is damaged.
    """
    written = read_choice(results, LEARNED_TARGETS)
    if written is None:
        return None
    try:
        return [_parse_checked_target(row) for row in written]
    except (KeyError, TypeError, ValueError) as error:
        path = Path(results, get_relative_choice_path(LEARNED_TARGETS))
        raise RecordError(
            f"{path}: The file is damaged ({error!r}). Delete the file, and run the study again "
            "to repeat the selection."
        ) from error


def _parse_checked_target(row: Mapping[str, Any]) -> CheckedTarget:
    return {
        "dataset": str(row["dataset"]),
        "model": str(row["model"]),
        "target": str(row["target"]),
        "dev_score": float(row["dev_score"]),
        "reference": row["reference"],
        "reference_dev_score": row["reference_dev_score"],
        "learned": bool(row["learned"]),
    }


def list_learned_targets(checked: Iterable[CheckedTarget]) -> frozenset[Target]:
    """Return the targets whose baselines are better than every reference on dev."""
    return frozenset(
        (row["dataset"], row["model"], row["target"]) for row in checked if row["learned"]
    )


def select_run_names(
    names: Sequence[RunName], config: TransferConfig, learned: frozenset[Target]
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
                f"No transfer to {row['dataset']}/{row['target']}{model} is trained "
                "(check_baselines): on the dev split, the baseline of this task has "
                f"{row['dev_score']:.1f} and {REFERENCES[row['reference']]} has "
                f"{row['reference_dev_score']:.1f}."
            )
