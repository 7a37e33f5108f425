"""Trainings that start from an adapter, and reading an adapter afterwards."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from adapted_stages import (
    EMOTIONS,
    EVERY_FAMILY,
    LORA,
    NLI,
    adapted,
    get_split,
    loaded,
    logits,
    scored,
)
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModel

from small_models import train_job
from tasktransfer.core.nodes import Evaluation, Outcome, Start
from tasktransfer.core.specs import AdapterStart, Family
from tasktransfer.errors import ModelError
from tasktransfer.evaluation.outcome import EvaluationInputs, predict_split
from tasktransfer.models.low_rank import EARLIER, WEIGHTS_FILE
from tasktransfer.models.representation import compute_representations
from tasktransfer.results.records import read_record
from tasktransfer.results.rows import read_record_rows, select_task_rows
from tasktransfer.training.hardware import Hardware

# --- one adapter after another ------------------------------------------------------------------


@pytest.mark.parametrize("start", ["continue", "merge", "stack"])
@pytest.mark.parametrize("family", EVERY_FAMILY)
def test_a_training_begins_where_its_source_ended(
    family: Family, start: AdapterStart, small: Path, tmp_path: Path
) -> None:
    lora = replace(LORA, start=start)
    source = adapted(family, lora, NLI)
    train_job(small, source, tmp_path / "source")
    checkpoint = tmp_path / "source" / "checkpoint"
    split = get_split(small, family, NLI)
    left = logits(loaded(small, source, checkpoint), split)
    begun = loaded(small, source, checkpoint, begins=True)
    torch.testing.assert_close(logits(begun, split), left, atol=1e-4, rtol=1e-4)
    ups = [p for n, p in begun.module.named_parameters() if "lora_B" in n and p.requires_grad]
    assert any(up.any() for up in ups) == (start == "continue"), "else the next adapter is new"
    last = adapted(family, lora, NLI, starts=(Start(source),), seed=1)
    train_job(small, last, tmp_path / "last", (str(checkpoint),))
    earlier = ["0"]
    if family == "encoder":  # one more, from that one's
        longest = adapted(family, lora, NLI, starts=(Start(last),))
        (tmp_path / "last").rename(tmp_path / "middle")
        train_job(small, longest, tmp_path / "last", (str(tmp_path / "middle" / "checkpoint"),))
        last, earlier = longest, ["0", "1"]
    side = "candidate" if family == "dual_encoder" else ""
    before = tmp_path / "last" / "checkpoint" / side / EARLIER
    assert sorted(p.name for p in before.glob("*")) == ([] if start == "continue" else earlier)
    if start != "continue":  # the source's adapter is what it was
        first = load_file(before / "0" / WEIGHTS_FILE)
        source_weights = load_file(checkpoint / side / WEIGHTS_FILE)
        assert first.keys() == source_weights.keys()
        assert all(torch.equal(first[n], source_weights[n]) for n in first)
    # What is left is the whole way: loaded, it is the model that was scored.
    model = loaded(small, last, tmp_path / "last" / "checkpoint")
    numbers = {p.requires_grad for n, p in model.module.named_parameters() if "earlier" in n}
    assert numbers == ({False} if start == "stack" else set())
    record = read_record(tmp_path / "last" / "metrics.json")
    test = get_split(small, family, NLI, "test")
    assert scored(model, test) == record["results"][NLI]["measures"]
    whole = logits(loaded(small, last, tmp_path / "last" / "checkpoint", begins=True), split)
    torch.testing.assert_close(logits(model, split), whole, atol=1e-4, rtol=1e-4)


def test_an_evaluation_lays_an_adapter_into_its_model(small: Path, tmp_path: Path) -> None:
    stage = adapted("encoder")
    train_job(small, stage, tmp_path)
    folder = small / "DailyDialog-encoder"
    places = EvaluationInputs(
        {(stage.data, stage.model.name): folder},
        lambda start: str(tmp_path / "checkpoint"),
        base=lambda model: str(small / "encoder"),
        beside=lambda model: None,
        revision=lambda model: None,
        hardware=Hardware("float32"),
    )
    outcome = Outcome((Start(stage),))
    evaluation = Evaluation(outcome, stage.data, EMOTIONS, ("micro_f1",))
    answers = predict_split(evaluation, outcome, places).predictions
    rows = select_task_rows(read_record_rows(tmp_path / "metrics.json"), EMOTIONS)
    assert [tuple(answer) for answer in rows["prediction"].to_pylist()] == answers
    # A checkpoint names its model too, for whoever is not told it.
    alone = replace(places, base=lambda model: None)  # type: ignore[arg-type,return-value]
    assert predict_split(evaluation, outcome, alone).predictions == answers


def test_a_text_is_represented_with_the_adapter(small: Path, tmp_path: Path) -> None:
    stage, device = adapted("encoder"), torch.device("cpu")
    train_job(small, stage, tmp_path)
    tokenizer, texts = small / "DailyDialog-encoder" / "tokenizer", ["hello there", "oh"]

    def found(folder: Path) -> Any:
        read = (tokenizer, "encoder", texts, 64)
        return compute_representations(folder, *read, adapter=stage.model.adapter, device=device)  # type: ignore[arg-type]

    peft = PeftModel.from_pretrained(
        AutoModel.from_pretrained(small / "encoder"), str(tmp_path / "checkpoint")
    )
    peft.merge_and_unload().save_pretrained(tmp_path / "merged")
    assert not np.allclose(found(small / "encoder"), found(tmp_path / "checkpoint"), atol=1e-3)
    np.testing.assert_allclose(
        found(tmp_path / "merged"), found(tmp_path / "checkpoint"), atol=1e-4
    )
    shutil.rmtree(tmp_path / "merged")
    config = tmp_path / "checkpoint" / "adapter_config.json"
    config.write_text(config.read_text().replace(str(small / "encoder"), "./gone"))
    with pytest.raises(ModelError, match=r"base model './gone' is missing"):
        found(tmp_path / "checkpoint")
