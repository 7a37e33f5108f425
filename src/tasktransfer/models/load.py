"""From a checkpoint (a Hugging Face name, a folder, a parent stage) to a model of a family."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from tasktransfer.core.architecture import is_recipe, saved_in
from tasktransfer.core.fidelity import Fidelity
from tasktransfer.core.specs import Family, Pooling, Reads
from tasktransfer.encoding.tokenizer import load_tokenizer
from tasktransfer.layers import attention
from tasktransfer.layers.dropout import use_fast_dropout
from tasktransfer.layers.gelu import use_one_gelu
from tasktransfer.layers.packing import first_position
from tasktransfer.models import next_utterance
from tasktransfer.models.built import drawn, encoders_of_config, is_built, two_copies, two_encoders
from tasktransfer.models.check_parameters import Note
from tasktransfer.models.checkpoint import Pooler, load_pretrained
from tasktransfer.models.dual_encoder import WEIGHTS_FILE, DualEncoder
from tasktransfer.models.encoder import HEADS_FILE, Encoder
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.reply_writer import ReplyWriter
from tasktransfer.models.text_to_text import Decoder, EncoderDecoder
from tasktransfer.tasks.card import Task

POOLERS: dict[Reads, Pooler] = {"pooler": "drawn", "own_pooler": "needed"}
"""What heads read → what becomes of the checkpoint's pooler; of others nothing."""


def load_model(
    family: Family,
    start: str,
    revision: str | None,
    tasks: dict[str, Task],
    manifest: dict[str, Any],
    tokenizer_folder: Path,
    *,
    seed: int,
    fidelity: Fidelity,
    loss_on: str,
    dropout: float | None,
    device: torch.device,
    plain: bool = False,
    adapter_reduction: int | None = None,
    reads: Reads = "pooler",
    note: Note = lambda text: None,
    beside: str | None = None,
    beside_reads: Pooling = "mean",
    cosine_scale: float | None = None,
) -> FamilyModel:
    """Build the model that a stage starts from.

    Args:
        start: Hugging Face name or folder; the folder of a parent stage brings its heads along.
        manifest: the encoded data's manifest (token ids of padding, longest answers).
        tokenizer_folder: where the encoded data keeps its tokenizer.
        seed: weights that the checkpoint lacks, new heads above all, start from it.
        fidelity: which dropouts are active, how heads start, how answers are chosen.
        dropout: replaces every dropout rate of the checkpoint's config; None keeps them.
        plain: transformers' own attention, dropout and generation on padded rows: the reference
            that the fast paths are held to.
        adapter_reduction: of the adapters that an encoder has for each task; None: it has none.
        reads: what an encoder's heads read of a sequence.
        note: told which pooler and heads the checkpoint lacks or has in vain.
        beside: name or folder of the encoder that reads beside a model.
        beside_reads: its encoding of a text, see ``core.specs.ModelSpec``.
        cosine_scale: see ``core.specs.Training``.

    Raises:
        ModelError: see ``checkpoint.load_pretrained``.
    """
    torch.manual_seed(seed)  # weights that the checkpoint lacks (a pooler) are drawn while loading
    if family == "encoder":
        backbone = _pretrained(family, start, revision, dropout, device, plain, note, reads)
        encoder = Encoder(
            backbone,
            tasks,
            seed=seed,
            pad_token_id=manifest["pad_token_id"],
            token_types=manifest["token_types"],
            longest_spans=manifest["max_answer_tokens"],
            fidelity=fidelity,
            device=device,
            first_position=None if plain else first_position(backbone.config),
            adapter_reduction=adapter_reduction,
            reads=reads,
        )
        heads = Path(start) / HEADS_FILE
        if heads.is_file():
            encoder.load_heads(heads)
        return encoder
    other = None
    if beside is not None:
        other = _pretrained("encoder", beside, None, dropout, device, True, note)
    if family == "dual_encoder":
        context, candidate = _both(start, revision, seed, dropout, device, note)
        pads = (manifest["pad_token_id"], *manifest.get("beside_pad_token_ids", ()))
        dual = DualEncoder(
            context,
            candidate,
            tasks,
            seed=seed,
            pads=pads,
            cosine_scale=cosine_scale,
            fidelity=fidelity,
            device=device,
            beside=other,
            beside_reads=beside_reads,
        )
        dual.load(Path(start))
        return dual
    tokenizer = load_tokenizer(str(tokenizer_folder), None, family)
    if is_recipe(start) or saved_in(Path(start)):
        limits = manifest["max_answer_tokens"]
        return next_utterance.load(start, tokenizer, tasks, limits, device, dropout)
    model = _pretrained(family, start, revision, dropout, device, plain, note)
    longest = manifest["max_answer_tokens"]
    if family == "decoder":
        return Decoder(
            model,
            tokenizer,
            tasks,
            max_answer_tokens=longest,
            loss_on=loss_on,
            device=device,
            plain=plain,
            fidelity=fidelity,
        )
    reader = EncoderDecoder(
        model, tokenizer, tasks, max_answer_tokens=longest, device=device, fidelity=fidelity
    )
    if other is None and not any(task.by_head for task in tasks.values()):
        return reader
    (pad,) = manifest.get("beside_pad_token_ids", (0,))
    writer = ReplyWriter(
        reader, tasks, seed=seed, beside=other, beside_pad=pad, beside_reads=beside_reads
    )
    writer.load(Path(start))
    return writer


def _both(
    start: str,
    revision: str | None,
    seed: int,
    dropout: float | None,
    device: torch.device,
    note: Note,
) -> tuple[Any, Any]:
    """The two encoders of a dual encoder before a stage's own weights are put in."""
    if is_built(start):
        return two_encoders(drawn(start, dropout), seed)
    if (Path(start) / WEIGHTS_FILE).is_file():
        return encoders_of_config(start, dropout)
    return two_copies(_pretrained("encoder", start, revision, dropout, device, True, note))


def _pretrained(
    family: Family,
    start: str,
    revision: str | None,
    dropout: float | None,
    device: torch.device,
    plain: bool,
    note: Note,
    reads: Reads = "pooler",
) -> Any:
    """The checked checkpoint, with the fast paths that its architecture has; of a built model its
    weights are drawn."""
    if is_built(start):
        model = drawn(start, dropout)
        use_fast_dropout(model)
        return model
    model = load_pretrained(
        family,
        start,
        revision,
        dropout=dropout,
        # On CPUs torch's fused attention runs its backward pass slower than plain products.
        attention="eager" if device.type == "cpu" else None,
        note=note,
        pooler=POOLERS.get(reads, "unused"),
    )
    if not plain:
        use_fast_dropout(model)
        if family != "encoder":  # whose recipe is older: BERT and its kin do not have it
            use_one_gelu(model)
        if model.config.model_type in attention.ARCHITECTURES:
            attention.register()
            model.set_attn_implementation(attention.NAME)
    return model
