"""Inputs of an encoder's heads: the first token, its own pooler, or two towers.

Also the cosine of a pretrained encoder.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import RobertaProcessing
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, RobertaConfig, RobertaModel

from tasktransfer import datasets
from tasktransfer.core.nodes import Data, Evaluation, Outcome
from tasktransfer.core.specs import ModelSpec, Reads, Training
from tasktransfer.designs.panel.sources.cards import make_pair_task
from tasktransfer.designs.panel.sources.dataset import PANEL_TINY
from tasktransfer.designs.panel.sources.pair_instances import FITS, make_instance
from tasktransfer.encoding.encode import encode_instances, list_truncation_warnings
from tasktransfer.encoding.encoded import read_split
from tasktransfer.encoding.encoder_examples import build_encoder_examples
from tasktransfer.encoding.tokenizer import load_tokenizer
from tasktransfer.errors import ModelError
from tasktransfer.evaluation.cosine import predict_cosine_ratings
from tasktransfer.evaluation.outcome import EvaluationInputs
from tasktransfer.layers.ragged import build_ragged
from tasktransfer.models.encoder import Encoder
from tasktransfer.models.load import Loading, load_model
from tasktransfer.models.pairs import START_MIDDLE, START_SCALE, split_pairs
from tasktransfer.models.representation import compute_representations
from tasktransfer.tasks.card import Instance, Task
from tasktransfer.training.hardware import Hardware
from tasktransfer.training.tiny import create_tokenizer

CPU = torch.device("cpu")

SPOKEN = "the boat is red and old . where now ? we go home to see it there"
WORDS = SPOKEN.split()
CARD = make_pair_task("Harbour", "PanelTiny", "for tests")
SAID = (
    (("the boat is red .", "where now ?"), "we go home ."),
    (("we go home to see it .",), "the old boat is there ."),
    (("where now ?", "home .", "the boat ?"), "we see it there ."),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a small BERT with a pooler, and its tokenizer."""
    place = tmp_path_factory.mktemp("bert")
    tokenizer = create_tokenizer("encoder", [SPOKEN] * 3)
    torch.manual_seed(0)
    shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = BertConfig(vocab_size=len(tokenizer), intermediate_size=32, **shape)
    model = BertModel(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4)
    model.save_pretrained(place)
    tokenizer.save_pretrained(place)
    return place


def instances() -> list[Instance]:
    return [
        make_instance("Harbour", f"{n}", f"d{n}", context, response, FITS)
        for n, (context, response) in enumerate(SAID)
    ]


def loading(folder: Path, reads: Reads, pad: int = 0, **changes: Any) -> Loading:
    """Return a function that loads a model of a folder with the facts that token ids provide."""
    manifest = {"pad_token_id": pad, "token_types": True, "max_answer_tokens": {"Harbour": 0}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    spec = ModelSpec("small", "encoder", "w1", 32, reads=reads)
    return Loading(spec, Training(dropout=0.0), folder, 1, CPU, **changes)


def loaded(folder: Path, reads: Reads, **changes: Any) -> Encoder:
    model = load_model(loading(folder, reads, **changes), str(folder), None, {"Harbour": CARD})
    assert isinstance(model, Encoder)
    model.module.eval()
    return model


def ratings(model: Encoder, folder: Path, tmp_path: Path, max_length: int = 32) -> list[float]:
    tokenizer = load_tokenizer(str(folder), None, "encoder")
    tmp_path.mkdir(exist_ok=True)
    encode_instances(tmp_path, tokenizer, CARD, "test", instances(), "encoder", max_length)
    split = read_split(tmp_path, "Harbour", "test")
    with torch.inference_mode():
        return [float(text) for (text,) in model.predict(split, range(len(split)))]


def test_a_classifier_reads_the_first_token_and_not_the_pooler(
    folder: Path, tmp_path: Path
) -> None:
    """Section IV: a linear layer on the first token.

    Computed by hand from transformers' own model.
    """
    tokenizer = load_tokenizer(str(folder), None, "encoder")
    plain = BertModel.from_pretrained(folder).eval()
    wanted: dict[str, list[float]] = {"first_token": [], "own_pooler": []}
    for reads, numbers in wanted.items():
        model = loaded(folder, reads)  # type: ignore[arg-type]
        for one in instances():
            read = tokenizer(one.context, one.query["response"], return_tensors="pt")
            with torch.inference_mode():
                outputs = plain(**read)
                first = outputs.last_hidden_state[:, 0]
                seen = first if reads == "first_token" else outputs.pooler_output
                numbers.append(float(torch.sigmoid(model.heads["Harbour"](seen))[0, 0]))
        assert ratings(model, folder, tmp_path / reads) == pytest.approx(numbers, abs=1e-6)
    assert wanted["first_token"] != pytest.approx(wanted["own_pooler"], abs=1e-3)
    names = loaded(folder, "first_token").get_parts()["encoder"]
    assert not [name for name in names if "pooler" in name]  # nor is one trained in vain


@pytest.mark.parametrize("plain", [False, True])
def test_a_twin_begins_as_the_cosine_of_its_two_towers(
    folder: Path, tmp_path: Path, plain: bool
) -> None:
    model = loaded(folder, "pair", plain=plain)
    texts = [text for one in instances() for text in (one.context, one.query["response"])]
    vectors = compute_representations(folder, folder, "encoder", texts, 32, device=CPU)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = (vectors[0::2] * vectors[1::2]).sum(1)
    wanted = 1 / (1 + np.exp(-START_SCALE * (cosine - START_MIDDLE)))
    assert ratings(model, folder, tmp_path) == pytest.approx(wanted, abs=1e-5)


def test_a_twin_reads_either_segment_without_the_other() -> None:
    rows = build_ragged(
        [np.array(row, np.int32) for row in ([2, 7, 8, 3, 9, 3], [2, 7, 3, 4, 5, 3])]
    )
    both = split_pairs(rows, np.array([4, 3], np.int32))
    assert [both[n].tolist() for n in range(4)] == [
        [2, 7, 8, 3], [2, 7, 3], [2, 9, 3], [2, 4, 5, 3],
    ]  # fmt: skip
    with pytest.raises(ModelError, match="one segment"):
        split_pairs(rows, np.array([6, 3], np.int32))


def test_a_twin_learns_in_both_towers(folder: Path, tmp_path: Path) -> None:
    model = loaded(folder, "pair")
    ratings(model, folder, tmp_path)
    split = read_split(tmp_path, "Harbour", "test")
    model.compute_loss(split, [0, 1, 2]).backward()  # type: ignore[no-untyped-call]
    head = model.heads["Harbour"].weight.grad
    assert head is not None
    assert (head != 0).all()  # |u - v| too, which it begins without
    assert all(p.grad is not None for p in model.get_parts()["encoder"].values())


def test_roberta_has_two_segments_without_token_types() -> None:
    """The tokenizer determines the start of the second segment, as there are no token types."""

    core = Tokenizer(WordLevel({word: n for n, word in enumerate(["<s>", "</s>", *WORDS])}))
    core.pre_tokenizer = Whitespace()
    core.post_processor = RobertaProcessing(("</s>", 1), ("<s>", 0))
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=core, model_input_names=["input_ids", "attention_mask"]
    )
    (one,) = build_encoder_examples(tokenizer, CARD, instances()[1:2], 32)
    (ids,), (start,) = one.sequences, one.second_starts
    assert tokenizer.decode(ids[start:]) == f"{SAID[1][1]} </s>"


def test_a_pooler_that_is_requested_is_never_drawn(tmp_path: Path) -> None:
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = RobertaConfig(vocab_size=40, intermediate_size=16, **shape)
    RobertaModel(config, add_pooling_layer=False).save_pretrained(tmp_path)
    notes: list[str] = []

    def load(reads: Reads) -> Any:
        how = loading(tmp_path, reads, pad=1, note=notes.append)
        return load_model(how, str(tmp_path), None, {"Harbour": CARD})

    with pytest.raises(ModelError, match=r"has no pooler.*reads: first_token"):
        load("own_pooler")
    load("first_token")
    assert not notes
    load("pooler")
    assert "initialised at random" in notes[0]


# --- the cosine ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "chosen"),
    [("last", lambda said: [said[-1]]), ("whole", lambda said: [" ".join(said)]), ("most", list)],
)
def test_the_cosine_of_what_was_said_last_of_all_and_of_the_nearest(
    folder: Path, what: str, chosen: Callable[[tuple[str, ...]], list[str]]
) -> None:
    model = ModelSpec("bert", "encoder", "sha256:0", 32)
    data = Data("PanelTiny", "r")
    datasets.add_dataset(PANEL_TINY)
    asked = Evaluation(
        Outcome((), model=model), data, "Harbour", ("closeness",), settings={"cosine": what}
    )
    encoded = folder.parent / f"encoded-{what}"
    encoded.mkdir()
    (encoded / "tokenizer").symlink_to(folder)
    places = EvaluationInputs(
        {(data, "bert"): encoded},
        lambda start: "",
        base=lambda name: str(folder),
        beside=lambda name: None,
        revision=lambda name: None,
        hardware=Hardware(),
    )
    found = predict_cosine_ratings(asked, asked.of, places, instances())  # type: ignore[arg-type]
    for value, (context, response) in zip(found.values, SAID, strict=True):
        texts = [*chosen(context), response]
        *others, own = compute_representations(folder, folder, "encoder", texts, 32, device=CPU)
        each = [float(one @ own / np.linalg.norm(one) / np.linalg.norm(own)) for one in others]
        assert 2 * value - 1 == pytest.approx(max(each), abs=1e-6)


# --- responses that are too long ----------------------------------------------------------------


def test_a_response_that_is_too_long_keeps_its_beginning_and_is_counted(folder: Path) -> None:
    tokenizer = load_tokenizer(str(folder), None, "encoder")
    long = " ".join(WORDS * 3)
    rows = [
        replace(one, query={**one.query, "response": text})
        for one, text in zip(instances(), ("we go home .", long, "home ."), strict=True)
    ]
    card: Task = CARD
    short, cut, other = build_encoder_examples(tokenizer, card, rows, 16)
    assert [one.shortened for one in (short, cut, other)] == [False, True, False]
    assert len(cut.sequences[0]) <= 16
    read = tokenizer.convert_ids_to_tokens(cut.sequences[0][cut.second_starts[0] : -1])
    assert read == tokenizer.tokenize(long)[: len(read)]
    assert len(read) == 12
    left = cut.sequences[0][1 : cut.second_starts[0] - 1]
    assert left == tokenizer(rows[1].context, add_special_tokens=False).input_ids[-len(left) :]
    manifest = {
        "max_length": 16, "max_answer_tokens": {}, "examples": {"Harbour-test": 3},
        "lost_answers": {}, "longer_answers": {}, "shortened": {"Harbour-test": 1},
    }  # fmt: skip
    (line,) = list_truncation_warnings(manifest)
    assert "1 of 3" in line
