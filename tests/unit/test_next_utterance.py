"""Models that are built from a recipe."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, get_args

import pytest
import torch

from tasktransfer.core.architecture import (
    Architecture,
    ArchitectureKind,
    check_architecture,
    parse_weights,
)
from tasktransfer.data.cache import cache_dataset
from tasktransfer.datasets import add_dataset
from tasktransfer.datasets.multiwoz import MULTIWOZ
from tasktransfer.encoding.encode import encode_dataset
from tasktransfer.encoding.word_tokenizer import build_word_tokenizer
from tasktransfer.errors import ModelError
from tasktransfer.layers import sequence_to_sequence as layers
from tasktransfer.models.next_utterance import Network, NextUtterance, load_next_utterance_model

KINDS = get_args(ArchitectureKind)
TEXTS = ["hello there <turn> it 's fine <turn> what now ? <turn>"] * 3
CPU = torch.device("cpu")


def built(kind: ArchitectureKind) -> NextUtterance:
    torch.manual_seed(0)
    architecture = Architecture(kind, embedding=8, units=8, feed_forward=16)
    return load_next_utterance_model(
        architecture.weights, build_word_tokenizer(TEXTS, 3), {}, {}, CPU
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("vocabulary", [50, 333])
def test_parameters_follow_the_formula(kind: ArchitectureKind, vocabulary: int) -> None:
    architecture = Architecture(kind, embedding=8, units=8, feed_forward=20, layers=3)
    counted = sum(p.numel() for p in Network(architecture, vocabulary).parameters())
    assert counted == architecture.count_parameters(vocabulary)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_is_never_read(kind: ArchitectureKind) -> None:
    model, texts = built(kind), ["hello", "hello there <turn> fine <turn> what now ?"]
    for how in ("state", "sum"):
        together = model.encode_texts(texts, 100, how)  # type: ignore[arg-type]
        alone = torch.cat([model.encode_texts([text], 100, how) for text in texts])  # type: ignore[arg-type]
        assert torch.allclose(together, alone, atol=1e-6)
        assert together.shape == (2, 8)


@pytest.mark.parametrize("kind", KINDS)
def test_decoding_step_by_step_equals_teacher_forcing_on_the_generated_words(
    kind: ArchitectureKind,
) -> None:
    model = built(kind)
    model.module.eval()
    ids, lengths = torch.tensor([[4, 5, 3, 6]]), torch.tensor([4])
    with torch.inference_mode():
        read = model.encoder(ids, lengths)
        said = model.decoder.generate(read, 1, 1, 5)  # type: ignore[operator]
        given = torch.cat([torch.tensor([[1]]), said[:, :-1]], 1)
        assert (model.decoder(given, read).argmax(-1) == said).all()


def test_hred_reads_sentences_and_the_others_words() -> None:
    ids, lengths = torch.tensor([[4, 5, 3, 6, 7, 3, 8]]), torch.tensor([7])
    assert built("hred").encoder(ids, lengths).memory.shape == (1, 3, 8)
    assert built("lstm").encoder(ids, lengths).memory.shape == (1, 7, 8)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_saved_is_read_back(kind: ArchitectureKind, tmp_path: Path) -> None:
    model = built(kind)
    model.save(tmp_path)
    again = load_next_utterance_model(str(tmp_path), model.tokenizer, {}, {}, CPU)
    for name, weight in model.module.state_dict().items():
        assert torch.equal(weight, again.module.state_dict()[name])
    check_architecture(tmp_path, model.architecture.weights)


def test_a_snapshot_of_another_architecture_is_refused(tmp_path: Path) -> None:
    model = built("lstm")
    model.save(tmp_path)
    other = replace(model.architecture, units=16)
    with pytest.raises(ModelError, match=r"architecture\.json.*has the architecture .*Remove"):
        check_architecture(tmp_path, other.weights)
    assert parse_weights(other.weights) == other


def test_the_vocabulary_is_of_training_dialogues_alone_and_counts_each_turn_once(
    tmp_path: Path,
) -> None:
    place = tmp_path / "multiwoz20"
    place.mkdir()
    state = {"hotel": {"semi": {}}}

    def dialogue(user: str, system: str) -> dict[str, Any]:
        turns = [(user, {}), (system, state), ("and so", {}), ("as well", state)]
        return {"log": [{"text": text, "metadata": of} for text, of in turns]}

    said = {"train": "often often often", "val": "later " * 9, "test": "never " * 9}
    for split, words in said.items():
        log = dialogue(words, "twice twice")
        (place / f"{split}.json").write_text(json.dumps({f"{split}1": log}))
    add_dataset(MULTIWOZ)
    cache_dataset("MultiWOZ", tmp_path, False, tmp_path / "instances")
    weights = Architecture("lstm").weights
    names, out = ["MultiWOZ_reply"], tmp_path / "encoded"
    encode_dataset(
        tmp_path / "instances", "MultiWOZ", names, weights, None, "encoder_decoder", 100, out
    )
    vocabulary = json.loads((out / "tokenizer" / "tokenizer.json").read_text())["model"]["vocab"]
    assert vocabulary.keys() - {"<pad>", "</s>", "<unk>", "<turn>"} == {"often"}


def test_words_that_are_seen_too_seldom_are_unknown() -> None:
    tokenizer = build_word_tokenizer([*TEXTS, "seldom seldom"], 3)
    assert "seldom" not in tokenizer.get_vocab()
    assert tokenizer("Hello seldom <turn>")["input_ids"][1:] == [2, 3]


class OnDevice(torch.Tensor):
    """A substitute for a tensor on a device that counts the waits of its host."""

    waited_for: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.__name__ in ("tolist", "item", "nonzero", "cpu", "__bool__"):
            cls.waited_for.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


@pytest.mark.parametrize("kind", KINDS)
def test_reading_waits_for_nothing_that_the_host_has_sent(kind: ArchitectureKind) -> None:
    model, turn = built(kind), build_word_tokenizer(TEXTS, 3)(TEXTS[:1])["input_ids"][0]
    words = torch.tensor([turn, turn])
    lengths = torch.tensor([len(turn), len(turn) - 3])
    rows = {"ids": words.as_subclass(OnDevice), "lengths": lengths, "words": words}
    plain = model._encode_rows({"ids": words, "lengths": lengths, "words": words})
    OnDevice.waited_for.clear()
    read = model._encode_rows(rows)
    assert OnDevice.waited_for == []
    assert torch.equal(read.memory.as_subclass(torch.Tensor), plain.memory)
    model._encode_rows({**rows, "words": rows["ids"]})
    assert bool(OnDevice.waited_for) == (kind == "hred"), "the words are cut where they lie"


@pytest.mark.parametrize("kind", ["lstm", "transformer"])
def test_looking_seldom_at_what_has_ended_changes_no_answer(
    kind: ArchitectureKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = built(kind)
    ids = torch.tensor([build_word_tokenizer(TEXTS, 3)(TEXTS[:1])["input_ids"][0]])
    rows = {"ids": ids, "lengths": torch.tensor([ids.shape[1]]), "words": ids}
    with torch.inference_mode():
        read = model._encode_rows(rows)
        (first,) = model.decoder.generate(read, 0, -1, 20)[:, 3].tolist()  # type: ignore[operator]
        often = model.decoder.generate(read, 0, first, 20)  # type: ignore[operator]
        monkeypatch.setattr(layers, "have_all_ended", lambda ended, step: step == 7)
        seldom = model.decoder.generate(read, 0, first, 20)  # type: ignore[operator]
    steps = often.shape[1]
    assert steps <= 4
    assert seldom.shape[1] == 8
    assert torch.equal(seldom[:, :steps], often)
