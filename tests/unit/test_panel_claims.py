"""Claims of the panel's pages: cosines, limits, sizes of corpora, exchanged contexts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from small_models import make_model
from tasktransfer.designs import load_config
from tasktransfer.designs.panel.collect import _count_utterances
from tasktransfer.designs.panel.config import PanelConfig
from tasktransfer.designs.panel.encoders import describe_cosines
from tasktransfer.designs.panel.ratings import exchange_contexts
from tasktransfer.designs.panel.sources.corpora import CorpusDialogue
from tasktransfer.designs.panel.sources.dataset import _convert_dialogue
from tasktransfer.models.representation import compute_representations
from tasktransfer.results.common_frames import describe_record_limits
from tasktransfer.tasks.card import Instance

PRESETS = Path(__file__).resolve().parents[2] / "workflow" / "presets"


@pytest.mark.parametrize(
    ("preset", "told"),
    [
        ("panel-laptop", "all-MiniLM-L6-v2, which was pretrained on 1.17 billion pairs"),
        ("panel-demo", "the tiny encoder, which was pretrained on synthetic dialogues"),
        ("panel", "which was pretrained on data that the study does not record"),
    ],
)
def test_the_training_data_of_the_cosines_are_reported(preset: str, told: str) -> None:
    config = load_config(PRESETS / f"{preset}.yaml")
    assert isinstance(config, PanelConfig)
    assert told in describe_cosines(config)


def test_input_embeddings_do_not_depend_on_the_layers(tmp_path: Path) -> None:
    make_model("encoder", ["hello there friend", "how are you today"], tmp_path)
    texts = ["hello there", "there hello", "how are you"]

    def represent(pooling: Any) -> Any:
        return compute_representations(
            tmp_path, tmp_path, "encoder", texts, 16, pooling, device=torch.device("cpu")
        )

    embedded, states = represent("input"), represent("mean")
    assert np.allclose(embedded[0], embedded[1])  # a mean of words has no order
    assert not np.allclose(states[0], states[1])
    assert not np.allclose(embedded[0], embedded[2])


def test_planned_numbers_of_pairs_are_no_limits() -> None:
    def record(**cuts: int) -> Any:
        return {"provenance": {"cuts": cuts}}

    joint = record(**{"training.limit_train": 2700, "training.limit_dev": 450})
    expert = record(**{"training.limit_train": 900})
    few = record(**{"training.limit_train": 30})
    planned = {("limit_train", 900), ("limit_train", 2700), ("limit_dev", 450)}
    assert describe_record_limits([joint, expert, few], planned) == "limit_train 30"
    assert "limit_dev 450" in describe_record_limits([joint, expert, few])


def test_utterances_and_words_of_a_corpus_are_counted() -> None:
    dialogues = [
        CorpusDialogue("a", "train", ("Hello there.", "Hi.", "How are you?")),
        CorpusDialogue("b", "train", ("Good morning.", "Fine weather today.")),
    ]
    instances = [one for said in dialogues for one in _convert_dialogue("Harbour", said)]
    ((*names, count, utterances, words),) = _count_utterances("Harbour", "train", instances)
    assert names == ["Harbour", "train"]
    assert (count, utterances, words) == (2, 5, 2 + 1 + 3 + 2 + 3)


def test_exchanged_items_have_the_context_of_another_item() -> None:
    items = [
        Instance(f"s-{n}", f"c{n // 3}", "s", "x" * (1 + n // 3), 1 + n // 3,
                 {"response": f"r{n}"}, (), ("1",), (), (0,))
        for n in range(12)
    ]  # fmt: skip
    exchanged = exchange_contexts(items)
    for before, after in zip(items, exchanged, strict=True):
        assert after.context != before.context
        assert after.focus == len(after.context)
        assert (after.id, after.dialogue_id, after.query) == (
            before.id, before.dialogue_id, before.query,
        )  # fmt: skip
    assert {item.context for item in exchanged} == {item.context for item in items}
