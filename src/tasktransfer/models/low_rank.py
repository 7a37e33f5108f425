"""Low-rank adapters (LoRA, Hu et al. 2021) with peft: adding, saving, loading and merging.

A checkpoint of a LoRA training contains peft's files ``adapter_config.json`` and
``adapter_model.safetensors``, without the base model's weights. ``earlier/<n>/`` contains the
adapters of earlier trainings, which are merged or stacked (``LowRank.start``). peft can read each
of them directly.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tasktransfer.config.places import has_hub_form
from tasktransfer.core.specs import Family, LowRank
from tasktransfer.errors import ConfigError, ModelError
from tasktransfer.files import json_text
from tasktransfer.models.weights import read_weights

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"
EARLIER = "earlier"

OWN = "default"
"""peft's name of the trained adapter; stacked adapters are ``earlier0``, ``earlier1`` etc."""

TASK_TYPES: dict[Family, str] = {
    "encoder": "FEATURE_EXTRACTION",
    "decoder": "CAUSAL_LM",
    "encoder_decoder": "SEQ_2_SEQ_LM",
    "dual_encoder": "FEATURE_EXTRACTION",
}
"""peft's task type by model family, for users who load a checkpoint with peft."""

Tensors = dict[str, Tensor]

_ATTRIBUTE = "adapted"


@dataclass(frozen=True, slots=True)
class ModelAdapters:
    """The adapters of a model.

    Attributes:
        peft: peft's wrapper of the model.
        earlier: adapters of earlier trainings, oldest first.
    """

    peft: Any
    earlier: tuple[Tensors, ...]

    def save(self, folder: Path) -> None:
        """Write the current and earlier adapters in peft's format."""
        from peft import get_peft_model_state_dict

        own = get_peft_model_state_dict(self.peft, save_embedding_layers=False)
        self._write(own, folder)
        for number, tensors in enumerate(self.earlier):
            self._write(tensors, folder / EARLIER / str(number))

    def _write(self, tensors: Tensors, folder: Path) -> None:
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        contiguous = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
        save_file(contiguous, folder / WEIGHTS_FILE, metadata={"format": "pt"})
        config = self.peft.peft_config[OWN]
        config.inference_mode = True  # peft's default for saved adapters
        config.save_pretrained(folder)
        config.inference_mode = False


def is_adapter(folder: str | Path) -> bool:
    """Return whether a folder contains an adapter without its base model."""
    return Path(folder, CONFIG_FILE).is_file()


def find_base_model(folder: str | Path) -> tuple[str, str | None]:
    """Find the base model of an adapter and its revision in the adapter's checkpoint.

    The base model is a folder, relative to the study's, or a name on the hub.

    Raises:
        ModelError: the checkpoint does not name a base model, or the base model is missing.
    """
    file = Path(folder, CONFIG_FILE)
    content = json_text.read_object(file)
    base, revision = content.get("base_model_name_or_path"), content.get("revision")
    if not isinstance(base, str) or not (Path(base).is_dir() or has_hub_form(base)):
        raise ModelError(
            f"{file}: The adapter's base model {base!r} is missing. Restore the base model, "
            "or train again."
        )
    return base, revision if isinstance(revision, str) else None


def has_adapter(model: Any) -> bool:
    """Return whether a model has an adapter from ``add_adapter``."""
    return _ATTRIBUTE in vars(model)


def merge_adapters(model: Any) -> Any:
    """Merge a model's adapters into its weights."""
    if not has_adapter(model):
        return model
    merged = vars(model).pop(_ATTRIBUTE).peft.merge_and_unload()
    vars(merged).pop("peft_config", None)
    return merged


def save_pretrained(model: Any, folder: Path) -> None:
    """Save a model with transformers, or only the adapter of an adapted model."""
    if has_adapter(model):
        vars(model)[_ATTRIBUTE].save(folder)
    else:
        model.save_pretrained(folder)


def add_adapter(
    model: Any,
    adapter: LowRank,
    family: Family,
    folder: Path | None,
    *,
    seed: int,
    whole: Sequence[str] = (),
    begins: bool = False,
    revision: str | None = None,
) -> Any:
    """Add an adapter to a model, and freeze the model's own weights.

    Args:
        model: the base model, changed in place.
        folder: adapter checkpoint to load; None for a new adapter from ``seed``.
        whole: modules that are trained and saved completely, because they are missing in the base
            model's checkpoint.
        begins: whether another training starts from ``folder``, as set by ``adapter.start``. If
            not, the adapter of ``folder`` is restored.
        revision: revision of the base model on the hub, to be stored in checkpoints.

    Returns:
        The model.

    Raises:
        ConfigError: peft is not installed.
        ModelError: the model has no layers that match ``target_modules``, or the files are damaged
            or belong to another adapter.
    """
    if find_spec("peft") is None:
        raise ConfigError(
            "models[].adapter: The package peft is not installed. Run pip install "
            "'tasktransfer[adapters]', or set models[].adapter to null."
        )
    there = [] if folder is None else _list_adapter_folders(folder)
    own = None if begins and adapter.start != "continue" else there[-1] if there else None
    before = [
        read_weights(place / WEIGHTS_FILE) for place in (there if own is None else there[:-1])
    ]
    if adapter.start == "merge":
        for tensors in before:
            model = _merge_adapter(model, adapter, family, tensors, whole)
    elif before:
        _load_whole_modules(model, before[-1], whole)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        peft = _wrap_model(model, adapter, family, whole)
    peft.peft_config[OWN].revision = revision
    if own is not None:
        _load_adapter(peft, read_weights(own / WEIGHTS_FILE), OWN, str(own))
    if adapter.start == "stack":
        _add_earlier_adapters(peft, adapter, family, before, whole)
    setattr(model, _ATTRIBUTE, ModelAdapters(peft, tuple(before)))
    return model


def _list_adapter_folders(checkpoint: Path) -> list[Path]:
    """Return the folders of a checkpoint's adapters, oldest first."""
    earlier = (checkpoint / EARLIER).glob("*")
    return [*sorted(earlier, key=lambda folder: int(folder.name)), checkpoint]


def _build_lora_config(adapter: LowRank, family: Family, whole: Sequence[str]) -> Any:
    from peft import LoraConfig

    return LoraConfig(
        r=adapter.rank,
        lora_alpha=adapter.alpha,  # type: ignore[arg-type]  # divided by the rank
        lora_dropout=adapter.dropout,
        target_modules=list(adapter.target_modules) or "all-linear",
        modules_to_save=list(whole) or None,
        task_type=TASK_TYPES[family],
    )


def _wrap_model(model: Any, adapter: LowRank, family: Family, whole: Sequence[str]) -> Any:
    """Wrap a model with peft, and add a new adapter.

    Raises:
        ModelError: a target name matches no layer, or a layer that does not support adapters.
    """
    from peft import get_peft_model

    _check_targets(model, adapter.target_modules)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning about GPT-2's transposed weights
            peft: Any = get_peft_model(model, _build_lora_config(adapter, family, whole))
    except ValueError as error:
        raise _build_target_error(
            model, adapter.target_modules, f"peft does not support them ({error})"
        ) from error
    config = peft.peft_config[OWN]
    config.target_modules = sorted(config.target_modules)  # a set has no fixed order
    return peft


def _check_targets(model: Any, targets: Sequence[str]) -> None:
    """Raise ModelError if a target name matches no layer.

    peft silently ignores it as long as another name matches.
    """
    layers = [f".{name}" for name, _ in model.named_modules()]
    misfits = [end for end in targets if not any(layer.endswith(f".{end}") for layer in layers)]
    if misfits:
        raise _build_target_error(model, misfits, "no layer has a name with this ending")


def _build_target_error(model: Any, targets: Sequence[str], problem: str) -> ModelError:
    """Return the error for invalid target names, which lists valid names."""
    from transformers.pytorch_utils import Conv1D  # GPT-2's linear layers

    output = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    linear = sorted(
        {
            name.rpartition(".")[2]
            for name, module in model.named_modules()
            if isinstance(module, nn.Linear | Conv1D) and module is not output
        }
    )
    return ModelError(
        f"models[].adapter.target_modules: {', '.join(targets) or 'all-linear'} cannot be used, "
        f"because {problem}. Set the key to all-linear, or to linear layers of "
        f"{model.config.model_type} ({', '.join(linear)})."
    )


def _merge_adapter(
    model: Any, adapter: LowRank, family: Family, tensors: Tensors, whole: Sequence[str]
) -> Any:
    """Merge an adapter into a model's weights, and return the model."""
    peft = _wrap_model(model, adapter, family, whole)
    _load_adapter(peft, tensors, OWN, EARLIER)
    model = peft.merge_and_unload()
    vars(model).pop("peft_config", None)
    return model


def _load_whole_modules(model: Any, tensors: Tensors, whole: Sequence[str]) -> None:
    """Load the modules that an earlier training has trained completely."""
    for name in whole:
        own = model.get_submodule(name).state_dict()
        for parameter in own:
            own[parameter].copy_(tensors[f"base_model.model.{name}.{parameter}"])


def _add_earlier_adapters(
    peft: Any,
    adapter: LowRank,
    family: Family,
    before: Sequence[Tensors],
    whole: Sequence[str],
) -> None:
    """Add frozen earlier adapters to a model, in addition to the trained adapter."""
    still = replace(adapter, dropout=0.0)
    names = [f"earlier{number}" for number in range(len(before))]
    for name, tensors in zip(names, before, strict=True):
        config = _build_lora_config(still, family, ())
        if whole:
            config.exclude_modules = rf"(.*\.)?({'|'.join(whole)})\..*"
        peft.add_adapter(name, config)
        _load_adapter(peft, tensors, name, EARLIER)
    peft.base_model.set_adapter([OWN, *names])
    for name, parameter in peft.named_parameters():
        if any(f".{earlier}." in name for earlier in names):
            parameter.requires_grad_(False)


def _load_adapter(peft: Any, tensors: Tensors, name: str, source: str) -> None:
    """Load the tensors of an adapter into a model's adapter ``name``.

    Raises:
        ModelError: the tensors belong to another adapter.
    """
    from peft import get_peft_model_state_dict, set_peft_model_state_dict

    own = get_peft_model_state_dict(peft, adapter_name=name, save_embedding_layers=False)
    if name != OWN:  # completely trained modules come from the newest adapter
        tensors = {key: tensor for key, tensor in tensors.items() if key in own}
    for key in {**own, **tensors}:
        shapes = [list(of[key].shape) if key in of else None for of in (tensors, own)]
        if shapes[0] != shapes[1]:
            raise ModelError(
                f"{source}: The parameter {key} has the shape {shapes[0] or 'missing'} in the "
                f"file, but {shapes[1] or 'missing'} in the model. Use an adapter of the same "
                "model, rank and target_modules."
            )
    set_peft_model_state_dict(peft, tensors, adapter_name=name)
