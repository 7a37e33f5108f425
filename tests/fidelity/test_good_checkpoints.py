"""Architectures of all three families load, are checked and train without specific code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from architectures import FAMILY_OF, write_checkpoint
from releases import tiny_release
from small_models import small_stage, train_job
from tasktransfer.core.specs import LowRank, ModelSpec, Training
from tasktransfer.data.cache import cache_dataset, read_instances
from tasktransfer.encoding.encode import encode_dataset
from tasktransfer.models.check_model import check_model
from tasktransfer.models.checkpoint import load_pretrained

DATASET, TASK, LENGTH = "DailyDialog", "emotion_recognition", 128

DRAWN = {
    "bert": "pooler.dense",
    "roberta": "pooler.dense",
    "mpnet": "pooler.dense",
    "albert": "pooler",
}
"""Weights of the backbone that are missing from a masked language model's checkpoint."""

LEFT = {
    "bert": "cls.predictions.transform.dense",
    "roberta": "lm_head",
    "distilbert": "vocab_transform",
    "electra": "generator_predictions.dense",
    "modernbert": "decoder",
}
"""Weights of the checkpoint that no task here uses."""


Weights = dict[str, torch.Tensor]


def bert_as_published(weights: Weights) -> Weights:
    """Return weights with TensorFlow names, a buffer, and the next-sentence head."""
    for old, new in (("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")):
        weights = {name.replace(old, new): tensor for name, tensor in weights.items()}
    weights["bert.embeddings.position_ids"] = torch.arange(256)[None]
    weights["cls.seq_relationship.weight"] = torch.ones(2, 32)
    return weights


def bert_with_other_heads(weights: Weights) -> Weights:
    """Return weights with the heads of Splinter, EuroBERT and Nomic BERT.

    The last of them is below the backbone's prefix.
    """
    heads = ("bert.head.dense.weight", "dense.weight", "bert_qass.start_classifier.weight")
    return {**weights, **{name: torch.ones(2, 2) for name in heads}}


def gpt2_as_published(weights: Weights) -> Weights:
    """Return weights with the backbone's own names, and with saved masks."""
    masks = {"h.0.attn.bias": torch.ones(1, 1, 4, 4), "h.0.attn.masked_bias": torch.tensor(-1e4)}
    return {**{n.removeprefix("transformer."): t for n, t in weights.items()}, **masks}


def t5_as_published(weights: Weights) -> Weights:
    """Return weights with an unused bias, and with the shared embeddings twice."""
    bias = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    shared = weights["shared.weight"].clone()
    return {**weights, bias: torch.ones(32, 2), "encoder.embed_tokens.weight": shared}


def deberta_v3_as_published(weights: Weights) -> Weights:
    """Return weights with heads that no transformers class has."""
    heads = {"mask_predictions.dense.weight", "lm_predictions.lm_head.dense.weight"}
    return {**weights, **{name: torch.ones(2, 2) for name in heads}}


@pytest.mark.parametrize(
    ("architecture", "habit"),
    [
        ("bert", bert_as_published),
        ("bert", bert_with_other_heads),
        ("gpt2", gpt2_as_published),
        ("t5", t5_as_published),
        ("deberta-v2", deberta_v3_as_published),
    ],
)
def test_habits_of_published_checkpoints_are_no_damage(
    architecture: str, habit: Callable[[Weights], Weights], tmp_path: Path
) -> None:
    folder = write_checkpoint(architecture, tmp_path)
    file = folder / "model.safetensors"
    save_file(habit(load_file(file)), file, {"format": "pt"})
    load_pretrained(FAMILY_OF[architecture], str(folder), None)


def test_an_encoder_whose_attention_a_training_destroyed_is_still_an_encoder(
    tmp_path: Path,
) -> None:
    write_checkpoint("bert", tmp_path)
    file = tmp_path / "model.safetensors"
    weights = load_file(file)
    weights |= {n: 0 * t for n, t in weights.items() if ".attention.self.value." in n}
    save_file(weights, file, metadata={"format": "pt"})
    load_pretrained("encoder", str(tmp_path), None)


@pytest.fixture(scope="module")
def instances(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("release")
    tiny_release(DATASET).write(base)
    cache_dataset(DATASET, base, False, base / "instances")
    return base / "instances"


@pytest.mark.parametrize("architecture", FAMILY_OF)
def test_an_architecture_loads_and_trains_an_epoch(
    architecture: str, instances: Path, tmp_path: Path
) -> None:
    family = FAMILY_OF[architecture]
    texts = [row.context for row in read_instances(instances, TASK, "train")] * 4
    checkpoint = str(write_checkpoint(architecture, tmp_path / "model", texts))
    notes: list[str] = []
    check_model(family, checkpoint, None, LENGTH, notes.append)
    encode_dataset(
        instances, DATASET, [TASK], checkpoint, None, family, LENGTH, tmp_path / "encoded", 0.05
    )
    trained = []
    for adapter in (None, LowRank(rank=2)):
        stage = small_stage(
            TASK,
            model=ModelSpec("small", family, "sha256:0", LENGTH, adapter=adapter),
            training=Training(epochs=1, batch_size=4, precision="float32"),
        )
        inputs = {"encoded": tmp_path / "encoded", "base": checkpoint}
        record = train_job(tmp_path, stage, tmp_path / stage.digest, **inputs)
        assert 0 <= record["results"][TASK]["score"] <= 100
        assert record["provenance"]["notes"] == notes
        counts = record["provenance"]["training"]["parameters"]  # type: ignore[index]
        trained.append(counts["trained"] / counts["all"])
    assert trained[1] < trained[0] == 1
    told = " | ".join(notes)
    assert ("The checkpoint lacks" in told) == (architecture in DRAWN)
    assert DRAWN.get(architecture, "") in told
    assert LEFT.get(architecture, "") in told
