"""Checks for conflicts between sections of a transfer config that are valid by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasktransfer.config import CheckpointConfig
from tasktransfer.config.from_core import resolve_switches
from tasktransfer.core.specs import FAMILIES
from tasktransfer.core.validation import Problem
from tasktransfer.designs.transfer.choices import COMPARED
from tasktransfer.designs.transfer.config_sections import (
    TransferModel,
    TransferTraining,
    find_hidden_field_problems,
    find_prompted_problems,
)
from tasktransfer.designs.transfer.dataset_section import (
    DatasetConfig,
    RequestedPairs,
    add_requested_pairs,
    choose_algorithms,
    find_cross_dataset_problems,
)
from tasktransfer.designs.transfer.multi_source_section import (
    find_chooser_problems,
    find_multi_source_problems,
)
from tasktransfer.designs.transfer.runs import BASELINE

_NO_TRANSFERS = "The study trains baselines only. Remove the key, or add an algorithm."


def find_contradictions(parts: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield all contradictions between sections of a config. ``parts`` has the valid sections."""
    datasets: tuple[DatasetConfig, ...] = parts.get("datasets", ())
    requested = RequestedPairs(*(parts.get(key) for key in ("pairs", "sources", "targets")))
    if isinstance(requested.pairs, tuple) and (requested.sources or requested.targets):
        yield Problem(
            "pairs",
            "The key cannot be combined with sources or targets. Use either pairs, or sources "
            "and targets.",
        )
    problems: list[Problem] = []
    if datasets:
        datasets, problems = add_requested_pairs(requested, datasets)
        yield from problems
    names = parts.get("algorithms", ())
    algorithms = choose_algorithms(names, datasets) if datasets else names or ()
    if datasets:
        mode = parts["multi_source"].mode if "multi_source" in parts else "off"
        yield from find_cross_dataset_problems(requested, datasets, algorithms, mode)
    trains = "models" not in parts or any(model.trained for model in parts["models"])
    if len(algorithms) > 1 and trains and not problems:
        yield from _find_missing_pairs(datasets, requested)
    if parts.get("racing"):
        yield from _find_race_problems(parts, algorithms)
    if parts.get("check_baselines"):
        yield from _find_check_problems(parts, algorithms)
    if parts.get("learning_curve") and not trains:
        yield Problem(
            "learning_curve",
            "The key has no effect if no model is trained. Remove it, or train a model.",
        )
    if parts.get("baseline_seeds"):
        yield from _find_missing_baseline_seeds(parts["baseline_seeds"], parts.get("seeds", ()))
    if "training" in parts:
        if trains:
            yield from _find_budget_problems(parts["training"], datasets)
        yield from _find_keys_without_heads(parts["training"], parts.get("models", ()))
        yield from _find_missing_turns(parts["training"], parts.get("models", ()))
    if "checkpoints" in parts and "pretrain_finetune" in algorithms:
        yield from _find_missing_checkpoints(parts["checkpoints"])
    if parts.get("prompted") and "models" in parts:
        yield from find_prompted_problems(parts["prompted"], parts["models"])
        yield from find_hidden_field_problems(datasets)
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
    """Yield problems of a study without training, which must prompt a model instead."""
    if not parts.get("prompted", True):
        message = (
            "The study lists no model to train or to prompt. Add a model, or add an endpoint to "
            "prompted."
        )
        if parts["models"]:
            message = (
                "No model is trained or prompted. Remove trained: false, or add a model to "
                "prompted."
            )
        yield Problem("models", message)
    elif parts.get("references"):
        yield Problem(
            "references",
            f"The value is [{', '.join(parts['references'])}], but no model is trained, so there "
            "is no baseline to compare it with. Remove the key, or train a model.",
        )


def _find_missing_pairs(
    datasets: tuple[DatasetConfig, ...], requested: RequestedPairs
) -> Iterator[Problem]:
    """Yield a problem for each reason why transfer algorithms have no pair of tasks."""
    for key in ("pairs", "sources"):
        if getattr(requested, key) == ():
            yield Problem(
                key,
                "The list is empty, but transfer algorithms need a source. Add a source, or set "
                "algorithms: [baseline].",
            )
            return
    for dataset in datasets if requested.is_empty else ():
        if not dataset.pairs:
            yield Problem(
                f"datasets.{dataset.name}",
                "The dataset has no pair of a source and another task as its target. List two or "
                "more tasks, or set algorithms: [baseline].",
            )


def _find_race_problems(parts: Mapping[str, Any], algorithms: tuple[str, ...]) -> Iterator[Problem]:
    if algorithms == (BASELINE,):
        yield Problem("racing", _NO_TRANSFERS)
    last, seeds = parts["racing"].seeds[-1], parts.get("seeds", ())
    if last > len(seeds):
        yield Problem(
            "racing.seeds",
            f"The last round has {last} seeds, but the study has only {len(seeds)}. Set seeds: "
            f"{last}.",
        )
    if parts.get("controls"):
        yield Problem(
            "racing",
            "Racing cannot be combined with controls, which run for every pair. Remove one of the "
            "two.",
        )
    if "multi_source" in parts and parts["multi_source"].mode == "auto":
        yield Problem(
            "racing",
            "Racing cannot be combined with multi_source.mode: auto, which selects from all "
            "pairs. Set mode to named or off, or remove racing.",
        )


def _find_check_problems(
    parts: Mapping[str, Any], algorithms: tuple[str, ...]
) -> Iterator[Problem]:
    """Yield conflicts between ``check_baselines`` and other keys."""
    if algorithms == (BASELINE,):
        yield Problem("check_baselines", _NO_TRANSFERS)
    if "references" in parts and not any(name in COMPARED for name in parts["references"]):
        yield Problem(
            "check_baselines",
            "Baselines are checked against the study's references, but the study has none of "
            f"{', '.join(COMPARED[:-1])} or {COMPARED[-1]}. Add the line `references: "
            "[most_frequent, tfidf_logistic]`.",
        )
    if "multi_source" in parts and parts["multi_source"].mode != "off":
        yield Problem(
            "check_baselines",
            "The check cannot be combined with multi_source. Set multi_source.mode: off.",
        )


def _find_missing_baseline_seeds(
    baseline_seeds: tuple[int, ...], seeds: tuple[int, ...]
) -> Iterator[Problem]:
    missing = [str(seed) for seed in seeds if seed not in baseline_seeds]
    if missing:
        yield Problem(
            "baseline_seeds",
            "The list must contain every seed in seeds, because transfers start from the baselines "
            f"with their own seeds. Add {', '.join(missing)}.",
        )


def _find_budget_problems(
    training: TransferTraining, datasets: tuple[DatasetConfig, ...]
) -> Iterator[Problem]:
    """Yield problems with the length of training and with recipes in reproductions."""
    if training.recipe and resolve_switches(training.fidelity)[0] != "default":
        yield Problem(
            "training.recipe",
            "A recipe cannot be combined with fidelity: paper or tlidb, which have their own "
            "hyperparameters. Remove one of the two.",
        )
    if training.updates is not None:
        for key in ("epochs", "min_updates"):
            if key in training.keys_in_file:
                message = (
                    "The key cannot be combined with updates, which replace it. Remove one of the "
                    "two keys."
                )
                yield Problem(f"training.{key}", message)
        return
    if training.recipe and not training.has_own_budget:
        return
    epochs = training.epochs
    missing = [d.name for d in datasets if isinstance(epochs, dict) and d.name not in epochs]
    for name in missing:
        yield Problem("training.epochs", f"The key has no value for {name}. Add {name}: 20.")


def _find_keys_without_heads(
    training: TransferTraining, models: Sequence[TransferModel]
) -> Iterator[Problem]:
    """Yield a problem for each key about classification heads if no model has heads."""
    trained = [model for model in models if model.trained]
    if not trained or any(model.family == "encoder" for model in trained):
        return
    keys = {
        "head_learning_rate": training.head_learning_rate is not None,
        "head_initialization": training.head_initialization != "random",
    }
    for key in (key for key, is_set in keys.items() if is_set):
        yield Problem(
            f"training.{key}",
            "The key has no effect, because only encoders have heads, and no encoder is trained. "
            "Remove it.",
        )


def _find_missing_turns(
    training: TransferTraining, models: Sequence[TransferModel]
) -> Iterator[Problem]:
    """Yield a problem for each model that reads turns, if inputs are built as in the toolkit."""
    if resolve_switches(training.fidelity)[1].inputs == "tlidb":
        for index, model in enumerate(models):
            if model.reads == "turn":
                yield Problem(
                    f"models[{index}].reads",
                    "The value is turn, but training.fidelity sets inputs: tlidb, and inputs of "
                    "the toolkit TLiDB do not mark the labelled turn. Set reads to mean, or inputs "
                    "to default.",
                )


def _find_missing_checkpoints(checkpoints: CheckpointConfig) -> Iterator[Problem]:
    if "baseline" not in checkpoints.keep:
        yield Problem(
            "checkpoints.keep",
            f"The value is [{', '.join(checkpoints.keep)}], but pretrain_finetune starts from the "
            "checkpoints of 'baseline'. Add 'baseline'.",
        )
