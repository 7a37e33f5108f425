"""Dual encoders and reply writers: training, saving, loading, and the paper's sizes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small_splits import build_split
from transformers import BertConfig, BertModel, MarianMTModel

from tasktransfer.config import ArchitectureConfig
from tasktransfer.core.fidelity import DEFAULT
from tasktransfer.core.specs import Pooling
from tasktransfer.evaluation import replies as replies_judged
from tasktransfer.evaluation.decoding import search_diverse_beams
from tasktransfer.layers.ragged import pad_rows
from tasktransfer.models.checkpoint import load_pretrained
from tasktransfer.models.dual_encoder import DualEncoder
from tasktransfer.models.encoder import Encoder
from tasktransfer.models.parts import freeze_other_parts
from tasktransfer.models.recipe import create_encoder_pair
from tasktransfer.models.reply_writer import ReplyWriter
from tasktransfer.models.text_to_text import EncoderDecoder
from tasktransfer.tasks.card import Instance, MetricSpec, Prompt, Task
from tasktransfer.training.build import build_config, build_tokenizer
from tasktransfer.training.memory import TokenBudget
from tasktransfer.training.setup import Setup

SMALL = ArchitectureConfig(
    layers=1, decoder_layers=1, hidden=16, heads=2, feed_forward=32, vocabulary_size=40
)
REPLY = Task("reply", "R", "D", "reply", (), (MetricSpec("bleu"),), "", Prompt("", 8), "", "", "")
LABELS = tuple(f"l{number}" for number in range(32))
FEELING = Task(
    "feeling", "F", "D", "dialogue_classification", LABELS, (MetricSpec("accuracy"),), "",
    Prompt("", 8), "", "", "", by_head=True,
)  # fmt: skip
TASKS = {"reply": REPLY, "feeling": FEELING}
CPU = torch.device("cpu")


def drawn(architecture: ArchitectureConfig, words: int, device: str = "cpu") -> Any:
    with torch.device(device):
        return MarianMTModel(build_config(architecture, words))


def bert() -> Any:
    torch.manual_seed(1)
    return BertModel(
        BertConfig(vocab_size=50, hidden_size=12, num_hidden_layers=1, num_attention_heads=2,
                   intermediate_size=24, max_position_embeddings=32)
    )  # fmt: skip


def dual(beside: Any = None, seed: int = 0, **more: Any) -> DualEncoder:
    torch.manual_seed(seed)
    pads = (0,) if beside is None else (0, 0)
    return DualEncoder(
        *create_encoder_pair(drawn(SMALL, 46), seed), TASKS, seed=seed, pads=pads,
        cosine_scale=None, fidelity=DEFAULT, device=CPU, beside=beside, **more,
    )  # fmt: skip


def writer(beside: Any = None, seed: int = 0, **more: Any) -> ReplyWriter:
    torch.manual_seed(seed)
    tokenizer = build_tokenizer(iter(["a b c d e f g"]), 40)
    inner = EncoderDecoder(
        drawn(SMALL, 46), tokenizer, TASKS, max_answer_tokens={"reply": 8, "feeling": 0}, device=CPU
    )
    return ReplyWriter(inner, TASKS, seed=seed, beside=beside, **more)


def count(module: Any, *, learnt: bool) -> int:
    return sum(p.numel() for p in module.parameters() if p.requires_grad or not learnt)


def test_the_papers_models_have_the_papers_parameters() -> None:
    """Table 4 with 250,000 words and 6 special ones.

    Retrieval counts its positions, generation does not; Multitask has 32 biases more than the paper
    counts.
    """
    paper, words = ArchitectureConfig(), 250_006
    model = drawn(paper, words, "meta")
    assert count(model, learnt=True) == 85_120_200
    assert count(drawn(ArchitectureConfig(layers=5), words, "meta"), learnt=True) == 86_204_100
    with torch.device("meta"):
        encoders = torch.nn.ModuleList(create_encoder_pair(model, 0))
    assert count(encoders, learnt=False) == 84_273_000
    head = torch.nn.Linear(paper.hidden, len(LABELS))
    assert (head.weight.numel(), head.bias.numel()) == (9_600, 32)


def test_positions_do_not_learn_after_a_checkpoint_either(tmp_path: Path) -> None:
    first = drawn(SMALL, 46)
    first.save_pretrained(tmp_path)
    again = load_pretrained("encoder_decoder", str(tmp_path), None)
    fixed = {name: p for name, p in again.named_parameters() if not p.requires_grad}
    assert set(fixed) == {f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")}
    for name, positions in first.named_parameters():
        assert name not in fixed or torch.equal(positions, fixed[name])


@pytest.mark.parametrize("make", [dual, writer])
def test_a_folder_gives_the_model_back(make: Any, tmp_path: Path) -> None:
    first, second = make(seed=0), make(seed=5)
    first.save(tmp_path)
    assert any(
        not torch.equal(a, b)
        for a, b in zip(first.module.parameters(), second.module.parameters(), strict=True)
    )
    if make is writer:
        again = MarianMTModel.from_pretrained(tmp_path)
        second.model.module.load_state_dict(again.state_dict())
    second.load(tmp_path)
    for name, parameter in first.module.named_parameters():
        assert torch.equal(parameter, dict(second.module.named_parameters())[name]), name


@pytest.mark.parametrize("make", [dual, writer])
def test_an_ensemble_starts_from_a_model_without_and_trains_its_projection_alone(
    make: Any, tmp_path: Path
) -> None:
    plain, joined = make(), make(beside=bert(), seed=3)
    plain.save(tmp_path)
    joined.load(tmp_path)
    moving = freeze_other_parts(joined, ("projection",))
    names = {n for n, p in joined.module.named_parameters() if any(p is m for m in moving)}
    assert names
    assert all(name.startswith("projection") for name in names)
    assert set(joined.get_parts()) >= {"beside", "projection", "head.feeling"}
    joined.enter_training_mode()
    assert not joined.module["beside"].training


@pytest.mark.parametrize("make", [dual, writer])
@pytest.mark.parametrize("reads", ["mean", "pooler"])
def test_an_ensemble_reads_the_classifiers_penultimate_layer(make: Any, reads: Pooling) -> None:
    """The classifier's head was trained on the pooled first token, not on the mean."""
    encoder = bert().eval()
    classifier = Encoder(
        encoder, {"feeling": replace(FEELING, by_head=False)}, seed=0, pad_token_id=0,
        token_types=False, longest_spans={}, fidelity=DEFAULT, device=CPU,
    )  # fmt: skip
    classifier.module.eval()
    split = build_split(
        "feeling", [[2, 7, 9, 3], [2, 8, 3]], labels=[[0]] * 2, second_starts=[4, 3]
    )
    read: list[torch.Tensor] = []
    classifier.heads["feeling"].register_forward_pre_hook(lambda _, given: read.append(given[0]))
    joined = make(beside=encoder, beside_reads=reads)
    values, mask = pad_rows(split.sequences, 0)
    with torch.inference_mode():
        classifier.predict(split, [0, 1])
        told = joined.encoding_beside(encoder, torch.from_numpy(values), torch.from_numpy(mask))
    (penultimate,) = read
    assert torch.allclose(told, penultimate, atol=1e-6) == (reads == "pooler")


def test_greedy_is_one_group_of_one_beam_and_more_groups_differ() -> None:
    torch.manual_seed(0)
    model = drawn(SMALL, 46).eval()
    ids = torch.randint(6, 46, (3, 5))
    mask = torch.ones_like(ids)
    with torch.inference_mode():
        attended = model.get_encoder()(input_ids=ids, attention_mask=mask)
        ours = search_diverse_beams(
            model, attended, mask, groups=1, beams=1, penalty=0.0, longest=6
        )
        theirs = model.generate(
            input_ids=ids, attention_mask=mask, do_sample=False, num_beams=1, max_new_tokens=6
        )[:, 1:]
        several = search_diverse_beams(
            model, attended, mask, groups=3, beams=2, penalty=0.5, longest=6
        )
    assert torch.equal(ours[:, : theirs.shape[1]], theirs)
    assert several.shape[0] == 3


def test_words_are_numbered_by_frequency_then_alphabet() -> None:
    tokenizer = build_tokenizer(iter(["b a a <SOC> c!", "C b a"]), 3)
    assert tokenizer.convert_ids_to_tokens(range(9)) == [
        "<pad>", "</s>", "<s>", "<unk>", "<SOC>", "<EOC>", "a", "b", "c",
    ]  # fmt: skip
    assert tokenizer("A zebra <SOC> b").input_ids == [6, 3, 4, 7, 1]


def test_perplexity_of_a_uniform_model_is_its_vocabulary() -> None:
    words, replies = 46, [[7, 8, 9, 1], [6, 1]]
    tokenizer = build_tokenizer(iter(["a b c d e f g"]), 40)
    module = drawn(SMALL, words)
    for each in (*module.parameters(), *module.buffers()):
        each.data.zero_()
    model = EncoderDecoder(
        module, tokenizer, TASKS, max_answer_tokens={"reply": 8, "feeling": 0}, device=CPU
    )
    targets = [("b c d",), ("a",)]
    split = build_split("reply", [[6, 7, 1]] * 2, labels=replies, targets=targets)
    rows = [
        Instance(name, name, "reply", "a b", 0, {}, (), target)
        for name, target in zip(split.ids, targets, strict=True)
    ]
    asked: Any = None
    with torch.inference_mode():
        setup = Setup(CPU, TokenBudget(64, "training"), TokenBudget(64, "evaluation"))
        told = replies_judged.evaluate_perplexity(asked, model, setup, split, rows).measures
    assert told["perplexity"] == pytest.approx(words, rel=1e-5)
    assert told["word_perplexity"] == pytest.approx(words, rel=1e-5)
