"""Conflicts between sections of a transfer config that are valid by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasktransfer.config import CheckpointConfig
from tasktransfer.config.fidelity import resolve_switches
from tasktransfer.core.specs import FAMILIES
from tasktransfer.core.validation import Problem
from tasktransfer.designs.transfer.config_sections import TransferModel, TransferTraining
from tasktransfer.designs.transfer.dataset_section import DatasetConfig, choose_algorithms
from tasktransfer.designs.transfer.multi_source_section import (
    find_chooser_problems,
    find_multi_source_problems,
)
from tasktransfer.designs.transfer.pairs import Asked, across, find_cross_dataset_problems
from tasktransfer.designs.transfer.prompted_section import find_hidden_texts, find_prompted_problems
from tasktransfer.designs.transfer.runs import BASELINE


def find_contradictions(parts: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield all conflicts between sections of a config; ``parts`` has the valid sections."""
    datasets: tuple[DatasetConfig, ...] = parts.get("datasets", ())
    asked = Asked(*(parts.get(key) for key in ("pairs", "sources", "targets")))
    if isinstance(asked.pairs, tuple) and (asked.sources or asked.targets):
        yield Problem("pairs", "cannot be combined with sources and targets: remove one")
    problems: list[Problem] = []
    if datasets:
        datasets, problems = across(asked, datasets)
        yield from problems
    names = parts.get("algorithms", ())
    algorithms = choose_algorithms(names, datasets) if datasets else names or ()
    if datasets:
        mode = parts["multi_source"].mode if "multi_source" in parts else "off"
        yield from find_cross_dataset_problems(asked, datasets, algorithms, mode)
    trains = "models" not in parts or any(model.trained for model in parts["models"])
    if len(algorithms) > 1 and trains and not problems:
        yield from _find_missing_pairs(datasets, asked)
    if parts.get("racing"):
        yield from _find_race_problems(parts, algorithms)
    if parts.get("check_baselines"):
        yield from _find_check_problems(parts, algorithms)
    if parts.get("learning_curve") and not trains:
        yield Problem(
            "learning_curve", "has no effect if no model is trained: remove it, or train a model"
        )
    if parts.get("baseline_seeds"):
        yield from _find_missing_baseline_seeds(parts["baseline_seeds"], parts.get("seeds", ()))
    if "training" in parts:
        if trains:
            yield from _find_budget_problems(parts["training"], datasets)
        yield from _find_rate_without_heads(parts["training"], parts.get("models", ()))
    if "checkpoints" in parts and "pretrain_finetune" in algorithms:
        yield from _find_missing_checkpoints(parts["checkpoints"])
    if parts.get("prompted") and "models" in parts:
        yield from find_prompted_problems(parts["prompted"], parts["models"])
        yield from find_hidden_texts(datasets)
    if not trains:
        yield from _find_untrained_problems(parts)
    if "multi_source" in parts:
        yield from find_multi_source_problems(parts["multi_source"], datasets, algorithms)
        trained = (model for model in parts.get("models", ()) if model.trained)
        families = frozenset(model.family for model in trained) or frozenset(FAMILIES)
        yield from find_chooser_problems(
            parts["multi_source"], parts.get("selectors", ()), families
        )


def _find_untrained_problems(parts: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield problems of a study that trains no model: it must prompt one, and compares nothing."""
    if not parts.get("prompted", True):
        message = "names no model, and nothing is prompted: add a model, or an endpoint to prompted"
        if parts["models"]:
            message = "none is trained or prompted: remove trained: false, or add one to prompted"
        yield Problem("models", message)
    elif parts.get("references"):
        yield Problem(
            "references",
            f"found [{', '.join(parts['references'])}], but no model is trained, so there is no "
            "baseline to compare them with: remove it, or train a model",
        )


def _find_missing_pairs(datasets: tuple[DatasetConfig, ...], asked: Asked) -> Iterator[Problem]:
    """Yield a problem for each reason why transfer algorithms have no pair."""
    for key in ("pairs", "sources"):
        if getattr(asked, key) == ():
            yield Problem(
                key,
                "is empty, but transfer algorithms need a source: name one, or set algorithms: "
                "[baseline]",
            )
            return
    for dataset in datasets if asked.is_open else ():
        if not dataset.pairs:
            yield Problem(
                f"datasets.{dataset.name}",
                "has no pair of a source and another task as its target: name two tasks or more, "
                "or set algorithms: [baseline]",
            )


def _find_race_problems(parts: Mapping[str, Any], algorithms: tuple[str, ...]) -> Iterator[Problem]:
    if algorithms == (BASELINE,):
        yield Problem("racing", "has no effect on baselines alone: remove it, or add an algorithm")
    last, seeds = parts["racing"].seeds[-1], parts.get("seeds", ())
    if last > len(seeds):
        yield Problem(
            "racing.seeds",
            f"its last round has {last} seeds, and seeds has {len(seeds)}: set seeds: {last}",
        )
    if parts.get("controls"):
        yield Problem(
            "racing", "cannot be combined with controls, which run for every pair: remove one"
        )
    if "multi_source" in parts and parts["multi_source"].mode == "auto":
        yield Problem(
            "racing",
            "cannot be combined with multi_source.mode: auto, which chooses from all pairs: set "
            "mode to named or off, or remove racing",
        )


def _find_check_problems(
    parts: Mapping[str, Any], algorithms: tuple[str, ...]
) -> Iterator[Problem]:
    """Yield keys without which baselines cannot be checked, and keys that need all transfers."""
    if algorithms == (BASELINE,):
        yield Problem(
            "check_baselines", "has no effect on baselines alone: remove it, or add an algorithm"
        )
    if not parts.get("references", True):
        yield Problem(
            "check_baselines",
            "compares baselines with references, but there are none: add references: "
            "[most_frequent, tfidf_logistic]",
        )
    if "multi_source" in parts and parts["multi_source"].mode != "off":
        yield Problem(
            "check_baselines", "cannot be combined with multi_source: set multi_source.mode: off"
        )


def _find_missing_baseline_seeds(
    baseline_seeds: tuple[int, ...], seeds: tuple[int, ...]
) -> Iterator[Problem]:
    missing = [str(seed) for seed in seeds if seed not in baseline_seeds]
    if missing:
        yield Problem(
            "baseline_seeds",
            f"does not contain {', '.join(missing)} of seeds: add it, because transfers start from "
            "the baselines of their own seeds",
        )


def _find_budget_problems(
    training: TransferTraining, datasets: tuple[DatasetConfig, ...]
) -> Iterator[Problem]:
    """Yield problems with the length of training, and with recipes in reproductions."""
    if training.recipe and resolve_switches(training.fidelity)[0] != "default":
        yield Problem(
            "training.recipe",
            "cannot be combined with fidelity: paper or tlidb, which have their own: remove one",
        )
    if training.updates is not None:
        for key in ("epochs", "min_updates"):
            if key in training.keys_in_file:
                message = "cannot be combined with updates, which replace it: remove one"
                yield Problem(f"training.{key}", message)
        return
    if training.recipe and not training.has_own_budget:
        return
    epochs = training.epochs
    missing = [d.name for d in datasets if isinstance(epochs, dict) and d.name not in epochs]
    for name in missing:
        yield Problem("training.epochs", f"has no value for {name}: add {name}: 20")


def _find_rate_without_heads(
    training: TransferTraining, models: Sequence[TransferModel]
) -> Iterator[Problem]:
    """Yield a problem if heads have a learning rate but no model has heads."""
    trained = [model for model in models if model.trained]
    if (
        training.head_learning_rate is not None
        and trained
        and all(model.family != "encoder" for model in trained)
    ):
        yield Problem(
            "training.head_learning_rate",
            "has no effect, because no encoder is trained and other families have no heads: "
            "remove it",
        )


def _find_missing_checkpoints(checkpoints: CheckpointConfig) -> Iterator[Problem]:
    if "baseline" not in checkpoints.keep:
        yield Problem(
            "checkpoints.keep",
            f"found [{', '.join(checkpoints.keep)}] without 'baseline', which pretrain_finetune "
            "starts from: add it",
        )
