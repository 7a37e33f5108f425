"""Loading of a checkpoint's weights, with checks against silently wrong results.

transformers initialises missing weights at random, ignores unknown ones, and loads nearly every
architecture as nearly every kind of model. Each of these has its uses, but here it would give
scores of another model than the configured one.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal, NoReturn

import torch

from tasktransfer.config.places import is_gguf
from tasktransfer.core.specs import Family
from tasktransfer.encoding.reading import build_source_arguments, translate_library_errors
from tasktransfer.errors import ModelError
from tasktransfer.models.check_parameters import Note, check_finite, check_parameters
from tasktransfer.models.low_rank import CONFIG_FILE, is_adapter
from tasktransfer.models.recipe import freeze_positions

Pooler = Literal["drawn", "needed", "unused"]

DIRECTION_NAMES = {
    "encoder": "bidirectional",
    "decoder": "causal",
    "encoder_decoder": "sequence-to-sequence",
}

MAX_SIZE_RATIO = 10
"""Maximum ratio of a model's size to that of its files, which may lack a pooler or share layers."""


def load_pretrained(
    family: Family,
    start: str,
    revision: str | None,
    *,
    dropout: float | None = None,
    attention: str | None = None,
    note: Note = lambda text: None,
    pooler: Pooler = "drawn",
) -> Any:
    """Load the pretrained model of a checkpoint."""
    model, _ = load_with_missing_modules(
        family, start, revision, dropout=dropout, attention=attention, note=note, pooler=pooler
    )
    return model


def load_with_missing_modules(
    family: Family,
    start: str,
    revision: str | None,
    *,
    dropout: float | None = None,
    attention: str | None = None,
    note: Note = lambda text: None,
    pooler: Pooler = "drawn",
) -> tuple[Any, tuple[str, ...]]:
    """Load a checkpoint's model, and list the modules without weights in the checkpoint.

    The model is in float32 on the CPU. Only safetensors and GGUF are read, and code from the
    checkpoint is never run.

    Args:
        start: Hugging Face name, folder, or GGUF file.
        dropout: rate that replaces every dropout rate of the checkpoint's config; None keeps them.
        attention: attention implementation by its name in transformers; None for the default.
        note: called with the pooler and heads that are missing in the checkpoint or not used.
        pooler: treatment of an encoder's pooler: ``drawn`` initialises a missing one at random,
            ``needed`` rejects a checkpoint without one, and ``unused`` builds no pooler.

    Returns:
        The model, and the modules that are missing in the checkpoint and initialised at random.

    Raises:
        ModelError: the files are damaged; the architecture belongs to another family; parameters
            are missing, unexpected, of another shape, NaN or infinite.
    """
    tensors, elements = _check_files(start)
    config = _read_config(start, revision)
    if tensors:
        _check_size(config, start, tensors, elements)
    if dropout is not None:
        _set_dropout(config, dropout)
    _check_class(family, config, start, revision)
    model, report = _load_from_pretrained(
        _select_auto_class(family), config, start, revision, attention
    )
    if config.model_type == "marian":
        freeze_positions(model)
    check_finite(model, start)
    _check_attention_direction(family, model, config, start)
    if pooler == "unused" and getattr(model, "pooler", None) is not None:
        model.pooler = None
        report["missing_keys"] = {p for p in report["missing_keys"] if not _is_pooler_parameter(p)}
    elif pooler == "needed" and any(_is_pooler_parameter(p) for p in report["missing_keys"]):
        raise ModelError(
            f"{start}: The checkpoint has no pooler, but `models[].reads: pooler` requires one. "
            "Set models[].reads: first_token, or use a checkpoint with a pooler."
        )
    check_parameters(family, model, report, start, note)
    modules = {name.partition(".")[0] for name in report["missing_keys"] if "." in name}
    return model, tuple(sorted(modules))


def _is_pooler_parameter(parameter: str) -> bool:
    return parameter.startswith("pooler.")


# --- files and config ---------------------------------------------------------------------------


def _check_files(start: str) -> tuple[int, int]:
    """Check that every weights file is complete and has a valid header.

    Args:
        start: folder, Hugging Face name, or GGUF file.

    Returns:
        The numbers of tensors and elements in the files; zeros for a Hugging Face name.
    """
    from safetensors import SafetensorError, safe_open

    if is_gguf(start):
        return _check_gguf(Path(start))
    if Path(start).is_file():
        raise ModelError(
            f"{start}: The checkpoint is a file, but it must be a folder. Specify the folder that "
            "contains the file, with config.json and the tokenizer's files."
        )
    if is_adapter(start):
        raise ModelError(
            f"{start}: The folder contains an adapter ({CONFIG_FILE}) without its base model. "
            "Set the checkpoint to the base model (and models[].adapter to train a new "
            "adapter), or merge the adapter into the base model and save the result."
        )
    shapes: list[list[int]] = []
    for file in sorted(Path(start).glob("*.safetensors")):
        _check_regular_file(file)
        try:
            with safe_open(file, framework="pt") as opened:
                names = opened.keys()
                shapes += [opened.get_slice(name).get_shape() for name in names]
        except (SafetensorError, OSError) as error:
            raise ModelError(
                f"{file}: The file is damaged ({file.stat().st_size} bytes, {error}). Copy or "
                "download the file again."
            ) from error
    return len(shapes), sum(map(math.prod, shapes))


def _check_regular_file(file: Path) -> None:
    """Raise ModelError if a file is missing or is not a regular file."""
    if not file.is_file():
        raise ModelError(
            f"{file}: The file does not exist, or is a pipe or device. Specify a file."
        )


def _check_gguf(file: Path) -> tuple[int, int]:
    """Check a GGUF file, and count its tensors and elements."""
    _check_regular_file(file)
    try:
        import accelerate  # noqa: F401  # transformers needs it
        from gguf import GGUFReader
    except ImportError as error:
        raise ModelError(
            f"{file}: Reading a GGUF checkpoint needs the packages gguf and accelerate, but "
            f"{error.name} is not installed. Run pip install 'tasktransfer[gguf]'."
        ) from error
    try:
        tensors = GGUFReader(file).tensors
    # The reader accesses memory beyond the end of a truncated file and raises any of these.
    except (OSError, ValueError, IndexError, KeyError, UnicodeDecodeError) as error:
        size = file.stat().st_size if file.is_file() else 0
        raise ModelError(
            f"{file}: The file is damaged or not in GGUF format ({size} bytes, {error}). Copy or "
            "download the file again."
        ) from error
    return len(tensors), sum(int(tensor.n_elements) for tensor in tensors)


def _build_dequantisation_options(start: str) -> dict[str, Any]:
    """Return the options with which transformers unpacks GGUF weights to float32."""
    if not is_gguf(start):
        return {}
    from transformers import GgufConfig

    return {"quantization_config": GgufConfig(dequantize=True)}


def _check_size(config: Any, start: str, tensors: int, elements: int) -> None:
    """Raise ModelError if the config describes a much larger model than the checkpoint contains.

    Building such a model would take much memory or time before the mismatch is found. The size is
    that of a model on the meta device.
    """
    from transformers import MODEL_MAPPING

    for name, layers in config.to_dict().items():
        counted = name.endswith(("layer", "layers")) and isinstance(layers, int)
        if counted and layers > MAX_SIZE_RATIO * tensors:
            _raise_size_error(start, f"{layers:,} layers ({name})", f"{tensors:,} tensors")
    if type(config) in MODEL_MAPPING:
        with (
            translate_library_errors(start, "The weights"),
            torch.random.fork_rng(devices=[]),
            torch.device("meta"),
        ):
            empty = _select_auto_class("encoder").from_config(config)
        asked = sum(parameter.numel() for parameter in empty.parameters())
        if asked > MAX_SIZE_RATIO * elements:
            _raise_size_error(start, f"{asked:,} parameters", f"{elements:,}")


def _raise_size_error(start: str, asked: str, held: str) -> NoReturn:
    raise ModelError(
        f"{start}: The file config.json specifies {asked}, but the weight files contain {held}. "
        "Use config.json and weights from the same checkpoint."
    )


def _read_config(start: str, revision: str | None) -> Any:
    from transformers import AutoConfig

    with translate_library_errors(start, "config.json"):
        return AutoConfig.from_pretrained(**build_source_arguments(start, revision))


def _set_dropout(config: Any, rate: float) -> None:
    """Set all dropout rates in a config, whose names depend on the architecture.

    Examples are ``resid_pdrop``, ``hidden_dropout_prob``, ``dropout_rate`` and
    ``classifier_dropout``.
    """
    for name, value in config.to_dict().items():
        if "drop" in name and (isinstance(value, float) or name == "classifier_dropout"):
            setattr(config, name, rate)


# --- family -------------------------------------------------------------------------------------


def _check_class(family: Family, config: Any, start: str, revision: str | None) -> None:
    """Raise ModelError if transformers has no class of the family for this architecture.

    The architecture must also be intended for the family: BERT, for example, has a class for causal
    models, too.
    """
    import transformers

    classes = {
        "encoder": transformers.MODEL_MAPPING,
        "decoder": transformers.MODEL_FOR_CAUSAL_LM_MAPPING,
        "encoder_decoder": transformers.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING,
    }[family]
    two_parts = bool(config.is_encoder_decoder)
    if type(config) in classes and two_parts == (family == "encoder_decoder"):
        return
    if two_parts:
        raise _build_family_error(family, "encoder_decoder", config, start)
    if type(config) not in transformers.MODEL_MAPPING:
        raise ModelError(
            f"{start}: The architecture {config.model_type!r} is not a language model. Use a "
            "language model."
        )
    backbone, _ = _load_from_pretrained(
        _select_auto_class("encoder"), config, start, revision, None
    )
    raise _build_family_error(family, _detect_family(backbone, start), config, start)


def _check_attention_direction(family: Family, model: Any, config: Any, start: str) -> None:
    """Raise ModelError if the attention (causal or bidirectional) contradicts the family."""
    if family == "encoder_decoder" or (right := _detect_family(model, start)) == family:
        return
    if family == "encoder":
        # A diverged training can leave attention that depends on a single token. The architecture
        # is therefore tested with random weights.
        with torch.random.fork_rng(devices=[]):
            fresh = _select_auto_class(family).from_config(config, dtype=torch.float32)
        right = _detect_family(fresh, start)
    if right != family:
        raise _build_family_error(family, right, config, start)


def _detect_family(model: Any, start: str) -> Family:
    """Return ``encoder`` if a token's output depends on later tokens, otherwise ``decoder``.

    It is measured from outputs, because the effect of a config's switches (``is_decoder``,
    ``use_bidirectional_attention``, ...) depends on the architecture.
    """
    model.eval()
    words = _count_embeddings(model, start)
    padding = getattr(model.config, "pad_token_id", None)
    ids = [i for i in range(max(0, words - 10), words) if i != padding]
    if len(ids) < 3:
        raise ModelError(
            f"{start}: The vocabulary has only {words} tokens. Use a trained checkpoint."
        )
    outputs = []
    with (
        torch.random.fork_rng(devices=[]),
        torch.inference_mode(),
        translate_library_errors(start, "The model"),
    ):
        for last in (ids[-1], ids[0]):
            row = torch.tensor([[*ids[:-1], last]])
            outputs.append(model(input_ids=row, attention_mask=torch.ones_like(row))[0][0, 0])
    change = float((outputs[0] - outputs[1]).abs().max() / outputs[0].abs().max())
    if not math.isfinite(change):
        raise ModelError(
            f"{start}: The model's outputs are NaN or infinite, although its weights are finite, "
            "so the weights are damaged or belong to another architecture. Use another "
            "checkpoint."
        )
    return "encoder" if change > 1e-6 else "decoder"


def _count_embeddings(model: Any, start: str) -> int:
    """Return the number of token embeddings of a model."""
    try:
        return int(model.get_input_embeddings().weight.shape[0])
    except (NotImplementedError, AttributeError) as error:  # characters (CANINE), images (ViT)
        raise ModelError(
            f"{start}: Models of type {model.config.model_type} have no token embeddings. Use "
            "a language model whose tokenizer returns token IDs."
        ) from error


def _build_family_error(family: Family, right: Family, config: Any, start: str) -> ModelError:
    why = {
        "encoder": "its tokens attend to later tokens, including the answer",
        "decoder": "its tokens do not attend to later tokens",
        "encoder_decoder": "it has an encoder and a decoder",
    }[right]
    return ModelError(
        f"{start}: {config.model_type} is a {DIRECTION_NAMES[right]} model ({why}), not a "
        f"{DIRECTION_NAMES[family]} model (family: {family}). Set family: {right}."
    )


def _select_auto_class(family: Family) -> Any:
    from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSeq2SeqLM

    return {
        "encoder": AutoModel,
        "decoder": AutoModelForCausalLM,
        "encoder_decoder": AutoModelForSeq2SeqLM,
    }[family]


# --- weights ----------------------------------------------------------------------------------


def _load_from_pretrained(
    auto_class: Any, config: Any, start: str, revision: str | None, attention: str | None
) -> tuple[Any, dict[str, Any]]:
    """Load a model, and return transformers' report of missing and unexpected parameters."""
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    with translate_library_errors(start, "The weights"):
        model, report = auto_class.from_pretrained(
            **build_source_arguments(start, revision),
            **_build_dequantisation_options(start),
            config=config,
            dtype=torch.float32,
            attn_implementation=attention,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # check_parameters rejects them
        )
    return model, report
