"""Checks for contradictions within a config, which are reported before anything is trained."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tasktransfer.config.brought import find_name_conflicts
from tasktransfer.core.validation import Problem, describe_unknown
from tasktransfer.designs.empathetic.methods import (
    CLASSIFIERS,
    CONTROLS,
    CONTROLS_OF_ENSEMBLES,
    CONTROLS_OF_LABELS,
    FIXED,
    LARGE,
    TOPIC_TASKS,
    is_ensemble,
    parse_prepend,
)
from tasktransfer.designs.empathetic.prompted_section import find_prompted_problems
from tasktransfer.designs.empathetic.sources.cards import LABELS, PAIRS

Parts = Mapping[str, Any]
"""Key → validated part of the config, without the parts that have problems."""

FAMILIES = {"retrieval": "dual_encoder", "generation": "encoder_decoder"}
"""Setting → family of its models."""
USED_NAMES = (*FIXED, *LARGE, *CONTROLS, *CONTROLS_OF_ENSEMBLES, *CLASSIFIERS)
CONTROLLED = "emoprepend-1"
"""The method that the controls repeat with other labels."""


def find_contradictions(parts: Parts) -> Iterator[Problem]:
    """Yield every contradiction in a config, with its key and remedy."""
    models = {model.name: model for model in parts.get("models", ())}
    settings = {name: parts[name] for name in FAMILIES if parts.get(name) is not None}
    if models:
        for name, section in settings.items():
            yield from _check_setting(name, section, models, parts)
        classifier = parts.get("classifier")
        if classifier:
            yield from _check_family("classifier.model", classifier.model, "encoder", models)
        for index, model in enumerate(models.values()):
            if model.second_encoder is not None:
                path = f"models[{index}].second_encoder"
                yield from _check_family(path, model.second_encoder, "encoder", models)
                if getattr(models.get(model.second_encoder), "second_encoder", None) is not None:
                    problem = f"{model.second_encoder!r} has a second encoder, too."
                    yield Problem(path, f"{problem} Choose a model without second_encoder.")
    if "retrieval" in parts and not (parts["retrieval"] or parts.get("generation")):
        yield Problem(
            "retrieval", "The sections retrieval and generation are missing. Add one of them."
        )
    yield from _check_evaluation(parts)
    yield from find_name_conflicts(parts.get("brought", ()), USED_NAMES)
    if models and "prompted" in parts:
        own = (replier.name for replier in parts.get("brought", ()))
        yield from find_prompted_problems(parts["prompted"], models, (*USED_NAMES, *own))
    methods = {method for section in settings.values() for method in section.methods}
    if FAMILIES.keys() <= parts.keys():
        yield from _check_controls(parts.get("controls", ()), methods, settings)


def _check_controls(
    controls: Collection[str], methods: Collection[str], settings: Collection[str]
) -> Iterator[Problem]:
    """Yield the controls of methods or settings that the study does not have."""
    for control in controls:
        of_labels = control in CONTROLS_OF_LABELS
        if control == "words":
            if "retrieval" not in settings:
                problem = "words is a control for retrieval, which the config does not have."
                yield Problem("controls", f"{problem} Add the section, or remove the control.")
        elif CONTROLLED not in methods if of_labels else not any(map(is_ensemble, methods)):
            what = CONTROLLED if of_labels else "ensembles"
            yield Problem(
                "controls",
                f"{control} is a control for {what}, which no setting has. Add it to "
                "retrieval.methods or generation.methods, or remove the control.",
            )


def _check_evaluation(parts: Parts) -> Iterator[Problem]:
    data, evaluation = parts.get("data"), parts.get("evaluation")
    if evaluation is None:
        return
    if parts.get("retrieval") and evaluation.limit and evaluation.limit < evaluation.block:
        yield Problem(
            "evaluation.limit",
            f"The value is {evaluation.limit}, which is less than evaluation.block "
            f"({evaluation.block}), so no block is left. Raise the limit, or reduce the block.",
        )
    for index, pool in enumerate(evaluation.pools):
        if data and "R" in pool.split("+") and PAIRS not in data.releases:
            yield Problem(
                f"evaluation.pools[{index}]",
                f"{pool!r} needs reply pairs, but data.releases.{PAIRS} does not specify a folder. "
                "Add the folder, or remove the pool.",
            )


def _check_family(
    path: str, name: str, family: str, models: Mapping[str, Any]
) -> Iterator[Problem]:
    if name not in models:
        yield Problem(path, describe_unknown("model", name, tuple(models)))
    elif models[name].family != family:
        found = models[name].family
        problem = f"{name!r} has family {found}. Choose a model with family {family}."
        yield Problem(path, problem)


def _check_setting(
    name: str, section: Any, models: Mapping[str, Any], parts: Parts
) -> Iterator[Problem]:
    yield from _check_family(f"{name}.model", section.model, FAMILIES[name], models)
    for key in ("ensemble", "large_model"):
        other = getattr(section, key, None)
        if other is not None:
            yield from _check_family(f"{name}.{key}", other, FAMILIES[name], models)
    offered = (*FIXED, *(LARGE if name == "generation" else ()))
    for index, method in enumerate(section.methods):
        path = f"{name}.methods[{index}]"
        if parse_prepend(method) is not None:
            yield from _check_prepend(path, method, models.get(section.model), parts)
        elif method not in offered:
            yield Problem(
                path, describe_unknown("method", method, (*offered, CONTROLLED, "topicprepend-1"))
            )
        if method.startswith("ensemble") and parts.get("classifier") is None:
            problem = f"{method!r} needs the section classifier. Add the section with its model."
            yield Problem(path, problem)
        if method.endswith("large") and section.large_model is None:
            problem = (
                f"{method!r} needs {name}.large_model. Set this key to the larger model's name."
            )
            yield Problem(path, problem)
    ensembles = [method for method in section.methods if method.startswith("ensemble")]
    if ensembles:
        yield from _check_ensemble(name, section, ensembles[0], models, parts.get("classifier"))


def _check_prepend(path: str, method: str, model: Any, parts: Parts) -> Iterator[Problem]:
    what, k = parse_prepend(method) or ("", 0)
    topics = parts.get("topics")
    labels: tuple[str, ...] = LABELS if what == "emo" else ()
    if what == "topic" and topics is not None:
        labels = TOPIC_TASKS[topics.dataset].labels
    if labels and k > len(labels):
        yield Problem(
            path,
            f"{method!r} prepends {k} labels, but there are only {len(labels)}. Reduce the number.",
        )
    positions = getattr(model and model.built, "positions", None)
    if positions is not None and model.max_length + k > positions:
        yield Problem(
            path,
            f"{method!r} reads {model.max_length} tokens and {k} labels, but {model.name} has "
            f"{positions} positions. Raise its architecture.positions.",
        )


def _check_ensemble(
    name: str, section: Any, method: str, models: Mapping[str, Any], classifier: Any
) -> Iterator[Problem]:
    """Yield the problems of an ensemble's model, which must be Base with the classifier's encoder.

    ``method`` is the first ensemble of the setting.
    """
    path, joined, own = f"{name}.ensemble", models.get(section.ensemble), models.get(section.model)
    if joined is None or joined.second_encoder is None:
        if joined is not None or section.ensemble is None:
            message = (
                f"{method!r} needs a model whose second_encoder is the classifier. Add this model."
            )
            yield Problem(path, message)
        return
    if classifier and joined.second_encoder != classifier.model:
        yield Problem(
            path,
            f"{joined.name!r} has the second_encoder {joined.second_encoder!r}, but "
            f"classifier.model is {classifier.model!r}. Set both keys to the same model.",
        )
    for key in ("checkpoint", "revision", "max_length", "architecture"):
        values = [getattr(model, key) for model in (joined, own) if model is not None]
        if values[1:] and values[0] != values[1]:
            yield Problem(
                path,
                f"{joined.name!r} is Base with a second encoder, but its {key} differs from the "
                f"{key} of {section.model!r}. Give both models the same value.",
            )
            return
