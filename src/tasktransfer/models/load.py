"""Loading of checkpoints (a Hugging Face name, a folder, a parent stage) as family models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from tasktransfer.core.architecture import is_recipe, read_metadata
from tasktransfer.core.specs import Family, LowRank, ModelSpec, Reads, Training
from tasktransfer.encoding.manifest import EncodedManifest, read_manifest
from tasktransfer.encoding.tokenizer import load_tokenizer
from tasktransfer.errors import ModelError
from tasktransfer.layers import attention
from tasktransfer.layers.dropout import use_fast_dropout
from tasktransfer.layers.gelu import use_fused_gelu
from tasktransfer.layers.packing import get_first_position
from tasktransfer.models import next_utterance
from tasktransfer.models.check_parameters import Note
from tasktransfer.models.checkpoint import Pooler, load_pretrained, load_with_missing_modules
from tasktransfer.models.dual_encoder import SIDES, WEIGHTS_FILE, DualEncoder
from tasktransfer.models.encoder import HEADS_FILE, Encoder
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.gradient_checkpointing import enable_gradient_checkpointing
from tasktransfer.models.low_rank import CONFIG_FILE, add_adapter, find_base_model, is_adapter
from tasktransfer.models.recipe import (
    create_empty_encoder_pair,
    create_encoder_pair,
    create_random_model,
    duplicate_encoder,
    is_recipe_folder,
)
from tasktransfer.models.reply_writer import ReplyWriter
from tasktransfer.models.text_to_text import Decoder, EncoderDecoder
from tasktransfer.tasks.card import Task

POOLERS: dict[Reads, Pooler] = {"pooler": "drawn", "own_pooler": "needed"}
"""Type of heads → treatment of the checkpoint's pooler; ``unused`` for all other types."""


@dataclass(frozen=True, slots=True)
class Loading:
    """The options for building a model, besides its checkpoint and tasks.

    Attributes:
        encoded: folder of token ids that the model reads, with their manifest and tokenizer.
        seed: seed of weights that are missing in the checkpoint, mainly of new heads.
        beside: name or folder of the encoder whose states the model reads in addition.
        plain: whether to use padding and transformers' own attention, dropout and generation, the
            reference for the fast paths.
        note: called with the pooler and heads that are missing in the checkpoint or not used.
        base: released model under the checkpoint of an adapter.
        base_revision: revision of ``base``.
        begins: whether a training starts from the adapter's checkpoint (``low_rank.add_adapter``).
        heads: whether an encoder loads the checkpoint's heads; False if one of them belongs to a
            task of the same name in another dataset.
    """

    model: ModelSpec
    training: Training
    encoded: Path
    seed: int
    device: torch.device
    beside: str | None = None
    plain: bool = False
    note: Note = lambda text: None
    base: str | None = None
    base_revision: str | None = None
    begins: bool = False
    heads: bool = True


def load_model(
    loading: Loading, start: str, revision: str | None, tasks: dict[str, Task]
) -> FamilyModel:
    """Build a family model from a checkpoint, for training or evaluation.

    Args:
        start: Hugging Face name or folder. Heads in the folder of a parent stage are loaded, too.
            If the folder contains an adapter, it is added to ``loading.base``.

    Raises:
        DataError: the token ids are missing or damaged.
        ModelError: see ``checkpoint.load_pretrained`` and ``low_rank.add_adapter``.
    """
    model = _build_family_model(loading, start, revision, tasks)
    if loading.training.gradient_checkpointing:
        enable_gradient_checkpointing(model.module, loading.model.name)
    return model


def _build_family_model(
    loading: Loading, start: str, revision: str | None, tasks: dict[str, Task]
) -> FamilyModel:
    family, device, training = loading.model.family, loading.device, loading.training
    torch.manual_seed(loading.seed)  # seed of missing weights (a pooler)
    manifest = read_manifest(loading.encoded)
    if family == "encoder":
        return _build_encoder(loading, start, revision, tasks, manifest)
    other = None
    if loading.beside is not None:
        beside = replace(loading, model=replace(loading.model, adapter=None))
        other = _load_pretrained(beside, "encoder", loading.beside, None, plain=True)
    if family == "dual_encoder":
        context, candidate = _build_encoder_pair(loading, start, revision)
        dual = DualEncoder(
            context,
            candidate,
            tasks,
            seed=loading.seed,
            pads=(manifest["pad_token_id"], *manifest.get("beside_pad_token_ids", ())),
            cosine_scale=training.cosine_scale,
            fidelity=training.fidelity,
            device=device,
            beside=other,
            beside_reads=loading.model.beside_reads,
        )
        dual.load(Path(start))
        return dual
    tokenizer = load_tokenizer(str(loading.encoded / "tokenizer"), None, family)
    longest = manifest["max_answer_tokens"]
    if is_recipe(start) or read_metadata(Path(start)):
        return next_utterance.load_next_utterance_model(
            start, tokenizer, tasks, longest, device, training.dropout
        )
    model = _load_pretrained(loading, family, start, revision, plain=loading.plain)
    if family == "decoder":
        return Decoder(
            model,
            tokenizer,
            tasks,
            max_answer_tokens=longest,
            loss_on=training.loss_on,
            device=device,
            plain=loading.plain,
            fidelity=training.fidelity,
        )
    reader = EncoderDecoder(
        model,
        tokenizer,
        tasks,
        max_answer_tokens=longest,
        device=device,
        fidelity=training.fidelity,
    )
    if other is None and not any(task.by_head for task in tasks.values()):
        return reader
    (pad,) = manifest.get("beside_pad_token_ids", (0,))
    writer = ReplyWriter(
        reader,
        tasks,
        seed=loading.seed,
        beside=other,
        beside_pad=pad,
        beside_reads=loading.model.beside_reads,
    )
    writer.load(Path(start))
    return writer


def _build_encoder(
    loading: Loading,
    start: str,
    revision: str | None,
    tasks: dict[str, Task],
    manifest: EncodedManifest,
) -> Encoder:
    """Build an encoder with one head per task, and load its checkpoint's heads."""
    reads = loading.model.reads
    backbone = _load_pretrained(
        loading, "encoder", start, revision, plain=loading.plain, reads=reads
    )
    encoder = Encoder(
        backbone,
        tasks,
        seed=loading.seed,
        pad_token_id=manifest["pad_token_id"],
        token_types=manifest["token_types"],
        longest_spans=manifest["max_answer_tokens"],
        fidelity=loading.training.fidelity,
        device=loading.device,
        first_position=None if loading.plain else get_first_position(backbone.config),
        adapter_reduction=loading.model.adapter_reduction,
        reads=reads,
    )
    heads = Path(start) / HEADS_FILE
    if loading.heads and heads.is_file():
        encoder.load_heads(heads)
    return encoder


def _build_encoder_pair(loading: Loading, start: str, revision: str | None) -> tuple[Any, Any]:
    """Build the two encoders of a dual encoder, without the weights of a stage."""
    dropout, adapter = loading.training.dropout, loading.model.adapter
    if is_recipe_folder(start):
        return create_encoder_pair(create_random_model(start, dropout), loading.seed)
    if (Path(start) / WEIGHTS_FILE).is_file() and adapter is None:
        return create_empty_encoder_pair(start, dropout)
    whole = replace(loading, model=replace(loading.model, adapter=None))
    folders = [Path(start, side) for side in SIDES]
    trained = is_adapter(folders[0])
    if trained:
        start, revision = _find_base_model(loading, start)
    pair = duplicate_encoder(_load_pretrained(whole, "encoder", start, revision, plain=True))
    if adapter is None:
        return pair
    context, candidate = (
        add_adapter(
            encoder,
            adapter,
            "dual_encoder",
            folder if trained else None,
            seed=loading.seed,
            begins=loading.begins,
            revision=revision,
        )
        for encoder, folder in zip(pair, folders, strict=True)
    )
    return context, candidate


def _find_base_model(loading: Loading, start: str) -> tuple[str, str | None]:
    """Find the base model of an adapter's checkpoint, and its revision.

    Raises:
        ModelError: the study's model has no adapter, or the base model is missing.
    """
    if loading.model.adapter is None:
        raise ModelError(
            f"{start}: The folder contains an adapter ({CONFIG_FILE}) without its base model, but "
            f"the config sets no adapter for the model {loading.model.name}. Use a checkpoint "
            "that was trained without adapters."
        )
    if loading.base is not None:
        return loading.base, loading.base_revision
    return find_base_model(
        Path(start, SIDES[0]) if loading.model.family == "dual_encoder" else start
    )


def load_body(
    family: Family, start: str, revision: str | None, adapter: LowRank | None = None
) -> Any:
    """Load a checkpoint as a transformers model, with its adapter but without task heads.

    Raises:
        ModelError: see ``checkpoint.load_pretrained`` and ``low_rank.add_adapter``.
    """
    if adapter is None or not is_adapter(start):
        return load_pretrained(family, start, revision)
    model, fresh = load_with_missing_modules(family, *find_base_model(start))
    return add_adapter(model, adapter, family, Path(start), seed=0, whole=fresh)


def _load_pretrained(
    loading: Loading,
    family: Family,
    start: str,
    revision: str | None,
    *,
    plain: bool,
    reads: Reads = "pooler",
) -> Any:
    """Load and check a checkpoint, with its adapter and fast paths.

    The weights of a built model are initialised at random.
    """
    dropout, adapter = loading.training.dropout, loading.model.adapter
    if is_recipe_folder(start):
        model = create_random_model(start, dropout)
        use_fast_dropout(model)
        return model
    folder = Path(start) if is_adapter(start) else None
    if folder is not None:
        start, revision = _find_base_model(loading, start)
    model, fresh = load_with_missing_modules(
        family,
        start,
        revision,
        dropout=dropout,
        # On CPUs, the backward pass of torch's fused attention is slower than plain products.
        attention="eager" if loading.device.type == "cpu" else None,
        note=loading.note,
        pooler=POOLERS.get(reads, "unused"),
    )
    if adapter is not None:
        model = add_adapter(
            model,
            adapter,
            family,
            folder,
            seed=loading.seed,
            whole=fresh,
            begins=loading.begins,
            revision=revision,
        )
    if not plain:
        use_fast_dropout(model)
        if family != "encoder":  # encoders like BERT do not use this variant of GELU
            use_fused_gelu(model)
        if model.config.model_type in attention.ARCHITECTURES:
            attention.register_attention()
            model.set_attn_implementation(attention.NAME)
    return model
