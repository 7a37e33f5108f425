"""Reading the weights of a checkpoint, and refusing those that would give wrong numbers in silence.

transformers draws what a checkpoint lacks at random, leaves out what it does not know, and loads
nearly every architecture as nearly every kind of model. Each of these is right for somebody; here
it would be a score of a model that nobody named.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal, NoReturn

import torch

from tasktransfer.config.places import is_gguf
from tasktransfer.core.specs import Family
from tasktransfer.encoding.reading import reading, source
from tasktransfer.errors import ModelError
from tasktransfer.models.built import keep_positions
from tasktransfer.models.check_parameters import Note, check_finite, check_parameters
from tasktransfer.models.low_rank import CONFIG_FILE, is_adapter

Pooler = Literal["drawn", "needed", "unused"]

FAMILY_OF_MODELS = {
    "encoder": "bidirectional",
    "decoder": "causal",
    "encoder_decoder": "sequence-to-sequence",
}

MOST_TIMES = 10
"""A model may have so many times what its files hold, which may lack a pooler or share layers."""


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
    """The checkpoint's model, as ``load_with_drawn``."""
    model, _ = load_with_drawn(
        family, start, revision, dropout=dropout, attention=attention, note=note, pooler=pooler
    )
    return model


def load_with_drawn(
    family: Family,
    start: str,
    revision: str | None,
    *,
    dropout: float | None = None,
    attention: str | None = None,
    note: Note = lambda text: None,
    pooler: Pooler = "drawn",
) -> tuple[Any, tuple[str, ...]]:
    """The checkpoint's model in float32 on the CPU: safetensors or GGUF, no code from the
    checkpoint.

    Args:
        start: Hugging Face name, folder, or a file in GGUF.
        dropout: replaces every dropout rate of the checkpoint's config; None keeps them.
        attention: transformers' name of an attention implementation; None: its own choice.
        note: told which pooler and heads the checkpoint lacks or has in vain.
        pooler: of an encoder; ``drawn`` at random where the checkpoint lacks it, ``needed``, or
            ``unused``: the model has none then.

    Returns:
        The model, and the modules that the checkpoint lacks and whose weights are drawn.

    Raises:
        ModelError: the files are damaged; the architecture is of another family; parameters are
            missing, left over, of another shape, NaN or infinite.
    """
    tensors, elements = _check_files(start)
    config = _read_config(start, revision)
    if tensors:
        _check_size(config, start, tensors, elements)
    if dropout is not None:
        _set_dropout(config, dropout)
    _check_class(family, config, start, revision)
    model, report = _from_pretrained(_auto_class(family), config, start, revision, attention)
    if config.model_type == "marian":
        keep_positions(model)
    check_finite(model, start)
    _check_direction(family, model, config, start)
    if pooler == "unused" and getattr(model, "pooler", None) is not None:
        model.pooler = None
        report["missing_keys"] = {p for p in report["missing_keys"] if not _of_pooler(p)}
    elif pooler == "needed" and any(_of_pooler(p) for p in report["missing_keys"]):
        raise ModelError(
            f"{start}: has no pooler, and one that is drawn at random is nobody's: let heads read "
            "the first token (models[].reads: first_token), or use a checkpoint that has one"
        )
    check_parameters(family, model, report, start, note)
    modules = {name.partition(".")[0] for name in report["missing_keys"] if "." in name}
    return model, tuple(sorted(modules))


def _of_pooler(parameter: str) -> bool:
    return parameter.startswith("pooler.")


# --- files and config ---------------------------------------------------------------------------


def _check_files(start: str) -> tuple[int, int]:
    """A folder, a name or a file in GGUF, and every file of weights has a whole header and all the
    bytes it announces; gives their tensors and elements, of a name none."""
    from safetensors import SafetensorError, safe_open

    if is_gguf(start):
        return _check_gguf(Path(start))
    if Path(start).is_file():
        raise ModelError(
            f"{start}: a file and no folder; give the folder that holds it, with config.json and "
            "the tokenizer's files"
        )
    if is_adapter(start):
        raise ModelError(
            f"{start}: holds an adapter ({CONFIG_FILE}) and not the model under it; name the model "
            "itself, with models[].adapter where one is trained, or merge the two and save them"
        )
    shapes: list[list[int]] = []
    for file in sorted(Path(start).glob("*.safetensors")):
        _refuse_irregular(file)
        try:
            with safe_open(file, framework="pt") as opened:
                names = opened.keys()
                shapes += [opened.get_slice(name).get_shape() for name in names]
        except (SafetensorError, OSError) as error:
            raise ModelError(
                f"{file}: damaged, {file.stat().st_size} bytes ({error}); copy or download it again"
            ) from error
    return len(shapes), sum(map(math.prod, shapes))


def _refuse_irregular(file: Path) -> None:
    """Libraries wait for a named pipe for ever."""
    if not file.is_file():
        raise ModelError(f"{file}: there is no such file, or it is a pipe or device; give a file")


def _check_gguf(file: Path) -> tuple[int, int]:
    """The same of a file in GGUF."""
    _refuse_irregular(file)
    try:
        import accelerate  # noqa: F401  # transformers asks for it
        from gguf import GGUFReader
    except ImportError as error:
        raise ModelError(
            f"{file}: a checkpoint in GGUF is read with the packages gguf and accelerate, and "
            f"{error.name} is not installed; pip install 'tasktransfer[gguf]'"
        ) from error
    try:
        tensors = GGUFReader(file).tensors
    # Its reader looks into memory that a file which is cut off does not have: any of these.
    except (OSError, ValueError, IndexError, KeyError, UnicodeDecodeError) as error:
        size = file.stat().st_size if file.is_file() else 0
        raise ModelError(
            f"{file}: damaged or not in GGUF, {size} bytes ({error}); copy or download it again"
        ) from error
    return len(tensors), sum(int(tensor.n_elements) for tensor in tensors)


def _dequantised(start: str) -> dict[str, Any]:
    """Weights in GGUF are unpacked to float32, whatever the device has kernels for."""
    if not is_gguf(start):
        return {}
    from transformers import GgufConfig

    return {"quantization_config": GgufConfig(dequantize=True)}


def _check_size(config: Any, start: str, tensors: int, elements: int) -> None:
    """The config asks for a model of the size of its files: another would take memory or hours
    before it is known not to fit them. Its size is that of one without values."""
    from transformers import MODEL_MAPPING

    for name, layers in config.to_dict().items():
        counted = name.endswith(("layer", "layers")) and isinstance(layers, int)
        if counted and layers > MOST_TIMES * tensors:
            _refuse_size(start, f"{layers:,} layers ({name})", f"{tensors:,} tensors")
    if type(config) in MODEL_MAPPING:
        with reading(start, "the weights"), torch.random.fork_rng(devices=[]), torch.device("meta"):
            empty = _auto_class("encoder").from_config(config)
        asked = sum(parameter.numel() for parameter in empty.parameters())
        if asked > MOST_TIMES * elements:
            _refuse_size(start, f"{asked:,} parameters", f"{elements:,}")


def _refuse_size(start: str, asked: str, held: str) -> NoReturn:
    raise ModelError(
        f"{start}: config.json asks for {asked}, and its files hold {held}; take config.json and "
        "weights from the same checkpoint"
    )


def _read_config(start: str, revision: str | None) -> Any:
    from transformers import AutoConfig

    with reading(start, "config.json"):
        return AutoConfig.from_pretrained(**source(start, revision))


def _set_dropout(config: Any, rate: float) -> None:
    """Every dropout rate of a config, however its architecture spells it (``resid_pdrop``,
    ``hidden_dropout_prob``, ``dropout_rate``, ``classifier_dropout``, ...)."""
    for name, value in config.to_dict().items():
        if "drop" in name and (isinstance(value, float) or name == "classifier_dropout"):
            setattr(config, name, rate)


# --- family -------------------------------------------------------------------------------------


def _check_class(family: Family, config: Any, start: str, revision: str | None) -> None:
    """transformers has a class of the family for this architecture, and it is meant as one: BERT,
    for one, has a class for causal models too."""
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
        raise _wrong_family(family, "encoder_decoder", config, start)
    if type(config) not in transformers.MODEL_MAPPING:
        raise ModelError(f"{start}: {config.model_type!r} is no architecture of language models")
    backbone, _ = _from_pretrained(_auto_class("encoder"), config, start, revision, None)
    raise _wrong_family(family, _direction(backbone, start), config, start)


def _check_direction(family: Family, model: Any, config: Any, start: str) -> None:
    if family == "encoder_decoder" or (right := _direction(model, start)) == family:
        return
    if family == "encoder":
        # A training that was driven apart can leave attention that looks at one token alone. That
        # says nothing of the architecture: weights that are drawn anew do.
        with torch.random.fork_rng(devices=[]):
            fresh = _auto_class(family).from_config(config, dtype=torch.float32)
        right = _direction(fresh, start)
    if right != family:
        raise _wrong_family(family, right, config, start)


def _direction(model: Any, start: str) -> Family:
    """``encoder`` if a token's output depends on the tokens after it, else ``decoder``.

    Measured, not looked up: what a config's switches make of an architecture (``is_decoder``,
    ``use_bidirectional_attention``, ...) is told by what comes out.
    """
    model.eval()
    words = _words(model, start)
    padding = getattr(model.config, "pad_token_id", None)
    ids = [i for i in range(max(0, words - 10), words) if i != padding]
    if len(ids) < 3:
        raise ModelError(f"{start}: its vocabulary has {words} tokens; use a trained checkpoint")
    outputs = []
    with torch.random.fork_rng(devices=[]), torch.inference_mode(), reading(start, "the model"):
        for last in (ids[-1], ids[0]):
            row = torch.tensor([[*ids[:-1], last]])
            outputs.append(model(input_ids=row, attention_mask=torch.ones_like(row))[0][0, 0])
    change = float((outputs[0] - outputs[1]).abs().max() / outputs[0].abs().max())
    if not math.isfinite(change):
        raise ModelError(
            f"{start}: the model's outputs are NaN or infinite, though its weights are not; they "
            "are damaged or of another architecture; take another checkpoint"
        )
    return "encoder" if change > 1e-6 else "decoder"


def _words(model: Any, start: str) -> int:
    """How many tokens a model has embeddings for."""
    try:
        return int(model.get_input_embeddings().weight.shape[0])
    except (NotImplementedError, AttributeError) as error:  # of characters (CANINE), images (ViT)
        raise ModelError(
            f"{start}: {model.config.model_type} has no embeddings of tokens; use a language model "
            "whose tokenizer gives token ids"
        ) from error


def _wrong_family(family: Family, right: Family, config: Any, start: str) -> ModelError:
    why = {
        "encoder": "its tokens see those after them, the answer too",
        "decoder": "its tokens do not see those after them",
        "encoder_decoder": "it has an encoder and a decoder",
    }[right]
    return ModelError(
        f"{start}: {config.model_type} is a {FAMILY_OF_MODELS[right]} model ({why}), and not a "
        f"{FAMILY_OF_MODELS[family]} one, as family: {family} says; set family: {right}"
    )


def _auto_class(family: Family) -> Any:
    from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSeq2SeqLM

    return {
        "encoder": AutoModel,
        "decoder": AutoModelForCausalLM,
        "encoder_decoder": AutoModelForSeq2SeqLM,
    }[family]


# --- weights ----------------------------------------------------------------------------------


def _from_pretrained(
    auto_class: Any, config: Any, start: str, revision: str | None, attention: str | None
) -> tuple[Any, dict[str, Any]]:
    """The model, and what transformers says of missing, unexpected and mismatched parameters."""
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    with reading(start, "the weights"):
        model, report = auto_class.from_pretrained(
            **source(start, revision),
            **_dequantised(start),
            config=config,
            dtype=torch.float32,
            attn_implementation=attention,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # they are in the report, and refused with their names
        )
    return model, report
