"""A checkpoint in one GGUF file: dequantised weights, tokenizer, and messages about problems."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from small_gguf import write_gguf
from tasktransfer import cli
from tasktransfer.config.places import has_hub_form, is_gguf
from tasktransfer.errors import ModelError
from tasktransfer.models.checkpoint import load_pretrained
from tasktransfer.models.checkpoint_digest import compute_file_digest
from tasktransfer.models.gguf import dequantise_checkpoint
from tasktransfer.results.revisions import is_hub_name


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_gguf(tmp_path / "small.gguf")
    return tmp_path / "small.gguf"


def logits(start: str) -> torch.Tensor:
    model = load_pretrained("decoder", start, None)
    with torch.inference_mode():
        result: torch.Tensor = model(input_ids=torch.arange(3, 13)[None]).logits
    return result


def test_weights_are_unpacked_as_they_are_and_written_once(tmp_path: Path) -> None:
    file, out = tmp_path / "small.gguf", tmp_path / "folder"
    weights = write_gguf(file)
    dequantise_checkpoint("decoder", str(file), out, "sha256:x", print)
    model = load_pretrained("decoder", str(out), None)
    for name, parameter in (
        ("token_embd", model.model.embed_tokens),
        ("output", model.lm_head),
        ("blk.1.ffn_down", model.model.layers[1].mlp.down_proj),
        ("blk.0.attn_v", model.model.layers[0].self_attn.v_proj),
    ):
        assert np.array_equal(parameter.weight.detach().numpy(), weights[name]), name
    assert torch.equal(logits(str(out)), logits(str(file)))
    assert json.loads((out / "dequantised.json").read_text()) == {"weights": "sha256:x"}


def test_a_file_is_named_by_its_content(file: Path, tmp_path: Path) -> None:
    write_gguf(other := tmp_path / "b.GGUF")
    assert compute_file_digest(file) == compute_file_digest(other)
    other.write_bytes(file.read_bytes()[:-1] + b"\0\0")
    assert compute_file_digest(file) != compute_file_digest(other)


def test_a_file_is_not_a_name_on_the_hub() -> None:
    for name in ("x.gguf", "models/x.Q4_1.GGUF"):
        assert is_gguf(name)
        assert not has_hub_form(name)
        assert not is_hub_name(name)
    assert not is_gguf("models/x-gguf")


@pytest.mark.parametrize("kept", [0, 10, 3000, 0.9])
def test_a_file_that_is_truncated_is_refused(file: Path, kept: float) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: int(kept if kept > 1 else kept * len(content))])
    words = r"small.gguf: The file is damaged or not in GGUF format .* download the file again"
    with pytest.raises(ModelError, match=words):
        load_pretrained("decoder", str(file), None)


def test_a_file_without_weights_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "small.gguf"
    write_gguf(file, without="blk.1.ffn_up")
    with pytest.raises(ModelError, match=r"missing in the file: .*layers.1.mlp.up_proj"):
        dequantise_checkpoint("decoder", str(file), tmp_path / "folder", "w", print)
    assert not (tmp_path / "folder").exists()


def test_validate_reads_it_and_says_what_does_not_fit(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = str(tmp_path / "results")
    study = {"study": "gguf", "results": results, "datasets": {"DailyDialog": {}}}
    model = {"name": "m", "family": "decoder", "checkpoint": str(file), "max_length": 100}
    config = tmp_path / "study.yaml"
    for changes, told in (
        ({}, "ok, study gguf"),
        ({"family": "encoder"}, "Set family: decoder"),
        ({"max_length": 500}, "Set max_length to 128 or less"),
        ({"checkpoint": str(tmp_path / "none.gguf")}, "none.gguf does not exist"),
    ):
        config.write_text(yaml.safe_dump({**study, "models": [{**model, **changes}]}))
        cli.main(["validate", "--config", str(config)])
        said = capsys.readouterr()
        assert told in said.out + said.err, said.err
