"""The benchmark of training speed: order, medians, table, and operations of models."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertModel, GPT2LMHeadModel, T5ForConditionalGeneration

from architectures import build_config
from benchmarks.training_speed import compare, flops, matrix_rate, table
from benchmarks.training_speed.__main__ import main
from benchmarks.training_speed.cases import CASES, compute_volume, parse_case
from benchmarks.training_speed.flops import Shape
from tasktransfer.errors import ConfigError, ModelError

ENCODER, DECODER = CASES[0], CASES[4]


def test_cases_are_parsed_and_others_refused() -> None:
    assert [parse_case(case.name) for case in CASES] == list(CASES)
    for text in ("encoder", "encoder:telepathy", "rnn:emotion_recognition"):
        with pytest.raises(ConfigError, match="Write FAMILY:TASK"):
            parse_case(text)


def test_updates_are_of_full_batches() -> None:
    assert compute_volume(4, 621, None).instances == 240
    few = compute_volume(5, 121, 40)  # two full batches: three passes
    assert (few.instances, few.epochs, few.updates, few.evaluate) == (120, 3, 6, 40)
    with pytest.raises(ConfigError, match="59 training instances"):
        compute_volume(1, 59, None)


def test_contestants_take_turns() -> None:
    three = ["tasktransfer", "tlidb", "hf_trainer"]
    turns = list(compare.iterate_turns([ENCODER, DECODER], three, 2))
    assert len(turns) == 12
    assert [t.contestant for t in turns[:3]] == three
    assert [t.contestant for t in turns[6:9]] == [*three[1:], three[0]]
    assert [t.case for t in turns[:6]] == [ENCODER] * 3 + [DECODER] * 3
    assert [t.repeat for t in turns] == [0] * 6 + [1] * 6


def test_who_is_absent_is_told_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "git clone" in str(compare.explain_absence("tlidb", None))
    (script := tmp_path / "tlidb" / "examples" / "train.py").parent.mkdir(parents=True)
    missing = f"{tmp_path} has no tlidb/examples/train.py"
    assert missing in str(compare.explain_absence("tlidb", tmp_path))
    script.touch()
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert "pip install scikit-learn" in str(compare.explain_absence("tlidb", tmp_path))
    assert "pip install accelerate" in str(compare.explain_absence("hf_trainer", None))
    assert compare.explain_absence("tasktransfer", None) is None


def measured(train: float, **others: Any) -> dict[str, Any]:
    return {
        "contestant": "tasktransfer", "start_up": 3.0, "train": train, "train_samples": 120,
        "updates": 2, "dev": 1.0, "dev_samples": 10, "test": 2.0, "test_samples": 40,
        "memory_mb": 500.0, "gpu_memory_mb": None, "device": "cpu", "precision": "float32",
        "score": 1.0, "processor": 7.0, **others,
    }  # fmt: skip


def test_medians_and_shares() -> None:
    runs = [measured(2.0), measured(6.0, start_up=9.0), measured(3.0, start_up=4.0)]
    forward = {"train": 50.0, "dev": 1.0, "test": 80.0}
    row = compare.summarise_runs(runs, forward, 2, {"float32": 1000.0, "bfloat16": 1.0})
    assert row["train_samples_per_second"] == 40.0
    assert row["train_spread"] == [20.0, 60.0]
    assert row["test_samples_per_second"] == 20.0
    assert row["start_up_seconds"] == 4.0
    # Forward 50 twice, backward twice that: 300 operations in 3 s of 1000 a second.
    assert row["share_of_limit_training"] == pytest.approx(0.1)
    assert row["share_of_limit_test"] == pytest.approx(0.04)
    assert row["gpu_memory_mb"] is None


@pytest.mark.parametrize("cuda", [False, True])
def test_each_precision_of_a_contestant_has_a_limit(cuda: bool) -> None:
    """A fraction of a limit that was not measured would end the bench after its last run."""
    computed_in = {"float32", "bfloat16"} | ({"float16"} if cuda else set())  # TLiDB's fp16
    assert set(matrix_rate.list_precisions(cuda)) == computed_in


def test_time_left_is_of_what_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(compare.time, "monotonic", lambda: now[0])
    turns = list(compare.iterate_turns([ENCODER], ["tasktransfer", "tlidb"], 2))
    eta = compare.Eta(turns)
    assert eta.estimate_seconds_left() is None
    for turn, seconds in zip(turns[:2], (10.0, 30.0), strict=True):
        eta.begin(turn)
        now[0] += seconds
        eta.end(turn)
    assert eta.estimate_seconds_left() == 40.0


def result_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "made": "2026-01-01T00:00:00Z",
        "machine": {"platform": "Linux", "threads": 2, "cores": 2},
        "matrix_rate": {"each": {"float32": [1e11, 3e11]}, "limit": {"float32": 3e11}},
        "volumes": {ENCODER.name: {"updates": 4, "evaluate": 240}},
        "skipped": {"hf_trainer": "it needs accelerate"},
        "failed": {"encoder:dialogue_nli tlidb": "boom"},
        "medians": [{"case": ENCODER.name, **row} for row in rows],
    }


def test_the_table_compares_with_this_trainer() -> None:
    forward = {"train": 1e9, "dev": 1e9, "test": 1e9}
    rows = [
        compare.summarise_runs([run], forward, 1, {"float32": 1e11})
        for run in (measured(2.0), measured(8.0, contestant="tlidb"))
    ]
    text = table.format_markdown(result_of(rows))
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    assert lines[2].startswith("| this trainer | 60.0 |  | 10.0 | 20.0 |  |")
    assert lines[3].startswith("| TLiDB | 15.0 | 4.00 | 10.0 | 20.0 | 1.00 |")
    assert "* HF Trainer was skipped: it needs accelerate" in text
    assert "* failed: encoder:dialogue_nli tlidb: boom" in text
    assert "at most 240 of dev and of test" in text


def test_the_release_must_be_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--data", "nowhere"]) == ConfigError.exit_code
    assert "--data nowhere: The folder does not exist." in capsys.readouterr().err


# --- operations of a model ------------------------------------------------------------------------


SMALL = Shape(layers=1, decoder_layers=1, hidden=2, attention=2, inner=4, products=2, vocabulary=10)


def ints(*values: int) -> Any:
    return np.array(values, np.int32)


def test_an_encoder_by_hand() -> None:
    # 3 tokens: projections 4·2·3·2·2 = 96, scores and sum 2·2·3·3·2 = 72, feed-forward 2·2·3·2·4.
    # Pooler 2·2·2 and head 2·2·5 a sequence; the span head 2·2·2 a token.
    assert flops.count_encoder_flops(SMALL, ints(3), span=False, width=5) == 264 + 8 + 20
    assert flops.count_encoder_flops(SMALL, ints(3), span=True, width=2) == 264 + 3 * 8
    twice = flops.count_encoder_flops(SMALL, ints(3, 3), span=False, width=5)
    assert twice == 2 * (264 + 28)


def test_other_architectures_are_refused() -> None:
    with pytest.raises(ModelError, match="bert, gpt2 and t5"):
        flops.read_shape({"model_type": "mamba"})


def counted(work: Any) -> int:
    with FlopCounterMode(display=False) as counter:
        work()
    return int(counter.get_total_flops())


def test_bert_as_torch_counts_it_forward_and_backward() -> None:
    config = build_config("bert", num_hidden_layers=3)
    model = BertModel(config)
    model.set_attn_implementation("eager")
    head = torch.nn.Linear(config.hidden_size, 7)
    ids = torch.randint(50, (2, 11))
    expected = flops.count_encoder_flops(
        flops.read_shape(config.to_dict()), ints(11, 11), span=False, width=7
    )
    assert counted(lambda: head(model(ids).pooler_output)) == expected
    both = counted(lambda: head(model(ids).pooler_output).sum().backward())
    assert both == flops.TRAINING * expected


def test_gpt2_as_torch_counts_it() -> None:
    config = build_config("gpt2", vocab_size=50)
    model = GPT2LMHeadModel(config)
    model.set_attn_implementation("eager")
    ids = torch.randint(50, (1, 13))
    expected = flops.count_decoder_flops(flops.read_shape(config.to_dict()), ints(9), ints(4))
    assert counted(lambda: model(ids, logits_to_keep=4, use_cache=False)) == expected


@pytest.mark.parametrize("kind", ["relu", "gated-gelu"])
def test_t5_as_torch_counts_it(kind: str) -> None:
    sizes = {"vocab_size": 50, "d_kv": 6, "num_decoder_layers": 3, "decoder_start_token_id": 0}
    config = build_config("t5", feed_forward_proj=kind, **sizes)
    model = T5ForConditionalGeneration(config)
    model.set_attn_implementation("eager")
    ids, labels = torch.randint(50, (1, 13)), torch.randint(50, (1, 4))
    expected = flops.count_encoder_decoder_flops(
        flops.read_shape(config.to_dict()), ints(13), ints(4)
    )
    assert counted(lambda: model(input_ids=ids, labels=labels, use_cache=False)) == expected
