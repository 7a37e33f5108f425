"""Named parts of a model: freezing, and copying or merging parts from other trainings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tasktransfer.core.nodes import Merge, Start
from tasktransfer.errors import ConfigError, ModelError
from tasktransfer.models.family import FamilyModel

MERGED: dict[Merge, Callable[[Tensor], Tensor]] = {
    "mean": lambda stacked: stacked.mean(0),
    "max": lambda stacked: stacked.amax(0),
    "min": lambda stacked: stacked.amin(0),
}
"""Functions that merge the stacked values of one parameter from several starts.

``ties`` is not among them, because it needs all parameters of a part together."""
TIES_FRACTION = 0.2
"""Fraction of the largest changes of a start that TIES keeps."""

Parameters = Mapping[str, nn.Parameter]
Tensors = Mapping[str, Tensor]
"""Tensors by their names inside a part."""


def freeze_other_parts(model: FamilyModel, trains: Sequence[str]) -> list[nn.Parameter]:
    """Freeze all parameters outside the given parts, and return the trainable parameters.

    Args:
        trains: names of the trained parts; nothing is frozen if it is empty.

    Returns:
        The trainable parameters, in module order.

    Raises:
        ConfigError: the model has no part with a given name.
    """
    if trains:
        parts = model.get_parts()
        wanted = {id(p) for name in trains for p in _select_part(parts, name, "trains").values()}
        for parameter in model.module.parameters():
            moves = parameter.requires_grad and id(parameter) in wanted  # sinusoids stay frozen
            parameter.requires_grad_(moves)
    return [parameter for parameter in model.module.parameters() if parameter.requires_grad]


def copy_trained_state(module: nn.Module) -> Tensors:
    """Copy a module's state to the CPU, without frozen parameters."""
    named = module.named_parameters(remove_duplicate=False)
    frozen = {name for name, parameter in named if not parameter.requires_grad}
    return {
        name: state.detach().to("cpu", copy=True)
        for name, state in module.state_dict().items()
        if name not in frozen
    }


def load_trained_state(module: nn.Module, moving: Tensors) -> None:
    """Load a state from ``copy_trained_state`` into a module."""
    unknown = module.load_state_dict(dict(moving), strict=False).unexpected_keys
    assert not unknown, f"of another module: {unknown}"


def replace_parts(model: FamilyModel, starts: Sequence[tuple[Start, FamilyModel]]) -> None:
    """Overwrite parts of a model by parts of other models.

    Args:
        model: changed in place.
        starts: descriptions of the parts, with the models that they come from. Starts without
            named parts are applied first, so that named parts take precedence. Several starts of
            the same target part are merged element by element, by the method that they all name.

    Raises:
        ConfigError: a part is unknown, or several starts of one part name no common merge method.
        ModelError: a part has other parameters or shapes than its target, or than a part that it
            is merged with.
    """
    _copy_parts(model, [(start, other) for start, other in starts if not start.parts])
    _copy_parts(model, [(start, other) for start, other in starts if start.parts])


def _copy_parts(model: FamilyModel, starts: Sequence[tuple[Start, FamilyModel]]) -> None:
    parts = model.get_parts()
    sources: dict[str, list[_Source]] = {}
    for start, other in starts:
        for source, target in _match_parts(start, other, parts):
            parameters = _select_part(other.get_parts(), source, "starts.parts")
            _select_part(parts, target, "starts.into")
            sources.setdefault(target, []).append(_Source(start, source, parameters))
    with torch.no_grad():
        for target, given in sources.items():
            merged = _merge_sources(given, target, parts[target])
            _replace_parameters(parts[target], merged, f"{given[0].part} → {target}")


@dataclass(frozen=True, slots=True)
class _Source:
    """A part of another model that is copied into this one."""

    start: Start
    part: str
    parameters: Tensors


def _match_parts(
    start: Start, other: FamilyModel, parts: Mapping[str, Tensors]
) -> list[tuple[str, str]]:
    """Return pairs of parts (source model's, target model's) of a start."""
    if not start.parts:
        return [(name, name) for name in other.get_parts() if name in parts]
    into = start.into or start.parts
    if len(into) != len(start.parts):
        raise ConfigError(
            f"starts.into: The list has {len(into)} names ({', '.join(into)}) for "
            f"{len(start.parts)} parts ({', '.join(start.parts)}). Give one name per part."
        )
    return list(zip(start.parts, into, strict=True))


def _select_part(parts: Mapping[str, Parameters], name: str, key: str) -> Parameters:
    if name not in parts:
        raise ConfigError(
            f"{key}: The model has no part {name!r}. Choose one of {', '.join(parts)}."
        )
    return parts[name]


def _merge_sources(sources: Sequence[_Source], target: str, base: Tensors) -> Tensors:
    """Merge several sources of a part into one.

    Args:
        base: the target part's current parameters.
    """
    ways = {source.start.merged for source in sources}
    (way, *others) = ways
    if others or (len(sources) > 1 and way is None):
        raise ConfigError(
            f"starts: The {len(sources)} parts ({', '.join(s.part for s in sources)}) are merged "
            f"into {target}, but their values of the key merged differ "
            f"({', '.join(sorted(map(str, ways)))}). Set merged to the same method for all of "
            f"these parts, {', '.join(MERGED)} or ties."
        )
    first = sources[0]
    if way is None or len(sources) == 1:
        return first.parameters
    for source in sources[1:]:
        _check_same_parameters(first, source)
    if way == "ties":
        return merge_with_ties(base, [source.parameters for source in sources])
    return {
        name: MERGED[way](torch.stack([source.parameters[name] for source in sources]))
        for name in first.parameters
    }


def merge_with_ties(base: Tensors, models: Sequence[Tensors]) -> dict[str, Tensor]:
    """Merge models that were fine-tuned from a common base by TIES (Yadav et al. 2023).

    The largest fifth of each model's changes is kept. The sign of a parameter's change is that of
    their sum, and its value is the mean of the changes with this sign.

    Args:
        base: parameters from which all models were trained.
    """
    changes = [
        {name: model[name].detach() - base[name].detach() for name in base} for model in models
    ]
    for change in changes:
        sizes = torch.cat([moved.abs().flatten() for moved in change.values()])
        kept = max(1, round(TIES_FRACTION * len(sizes)))
        least = torch.kthvalue(sizes, len(sizes) - kept + 1).values
        for name, moved in change.items():
            change[name] = torch.where(moved.abs() >= least, moved, torch.zeros_like(moved))
    merged: dict[str, Tensor] = {}
    for name, parameter in base.items():
        stacked = torch.stack([change[name] for change in changes])
        agree = (stacked != 0) & (stacked.sign() == stacked.sum(0).sign())
        mean = (stacked * agree).sum(0) / agree.sum(0).clamp_min(1)
        merged[name] = parameter.detach() + mean
    return merged


def _check_same_parameters(first: _Source, other: _Source) -> None:
    problem = _describe_difference(first.parameters, other.parameters)
    if problem:
        raise ModelError(
            f"starts: The parts {first.part} and {other.part} cannot be merged ({problem}). "
            "Merge parts of the same architecture."
        )


def _replace_parameters(part: Parameters, tensors: Tensors, way: str) -> None:
    problem = _describe_difference(tensors, part)
    if problem:
        raise ModelError(
            f"starts: The replacement {way} is not possible ({problem}). Use a part of the same "
            "architecture."
        )
    for name, parameter in part.items():
        parameter.copy_(tensors[name])


def _describe_difference(tensors: Tensors, others: Tensors) -> str | None:
    """Describe the first parameter in which two parts differ, or return None."""
    for name in {**tensors, **others}:
        shapes = [[*part[name].shape] if name in part else None for part in (tensors, others)]
        if shapes[0] != shapes[1]:
            first, second = (f"of shape {shape}" if shape else "missing" for shape in shapes)
            return f"{name} is {first} in the first and {second} in the second"
    return None
