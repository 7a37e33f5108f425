"""A checkpoint in one GGUF file: dequantised weights, tokenizer, and messages about problems."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from gguf import GGMLQuantizationType, GGUFWriter, dequantize, quantize
from tokenizers.pre_tokenizers import ByteLevel

from tasktransfer import cli
from tasktransfer.config.places import has_hub_form, is_gguf
from tasktransfer.errors import ModelError
from tasktransfer.models.checkpoint import load_pretrained
from tasktransfer.models.checkpoint_digest import compute_file_digest
from tasktransfer.models.gguf import dequantise
from tasktransfer.results.revisions import is_hub_name

HIDDEN, INNER, LAYERS, HEADS = 64, 96, 2, 2
Q4 = GGMLQuantizationType.Q4_1


def write_gguf(file: Path, *, without: str = "") -> dict[str, np.ndarray]:
    """Write a small Llama with random 4-bit weights and byte tokens, and return its weights.

    ``without``: a tensor that is missing in the file.
    """
    random = np.random.default_rng(0)
    tokens = ["<|endoftext|>", "<s>", "</s>", *sorted(ByteLevel.alphabet()), "th"]
    writer = GGUFWriter(file, "llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([3, 3, 3] + [1] * (len(tokens) - 3))
    writer.add_token_merges(["t h"])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    shapes = {"token_embd": (len(tokens), HIDDEN), "output": (len(tokens), HIDDEN)}
    square, up, down = (HIDDEN, HIDDEN), (INNER, HIDDEN), (HIDDEN, INNER)
    of_layer = {"attn_q": square, "attn_k": square, "attn_v": square, "attn_output": square}
    of_layer |= {"ffn_gate": up, "ffn_up": up, "ffn_down": down}
    norms = ["output_norm"]
    for layer in range(LAYERS):
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in of_layer.items()}
        norms += [f"blk.{layer}.{name}" for name in ("attn_norm", "ffn_norm")]
    weights = {}
    for name, shape in shapes.items():
        if name != without:
            packed = quantize(random.normal(0, 0.2, shape).astype(np.float32), Q4)
            writer.add_tensor(f"{name}.weight", packed, raw_dtype=Q4)
            weights[name] = dequantize(packed, Q4)
    for name in norms:
        writer.add_tensor(f"{name}.weight", np.ones(HIDDEN, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return weights


def logits(start: str) -> torch.Tensor:
    model = load_pretrained("decoder", start, None)
    with torch.inference_mode():
        result: torch.Tensor = model(input_ids=torch.arange(3, 13)[None]).logits
    return result


def test_weights_are_unpacked_as_they_are_and_written_once(tmp_path: Path) -> None:
    file, out = tmp_path / "small.gguf", tmp_path / "folder"
    weights = write_gguf(file)
    dequantise("decoder", str(file), out, "sha256:x", print)
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


def test_a_file_is_named_by_its_content(tmp_path: Path) -> None:
    first, second = tmp_path / "a.gguf", tmp_path / "b.GGUF"
    write_gguf(first)
    write_gguf(second)
    assert compute_file_digest(first) == compute_file_digest(second)
    second.write_bytes(first.read_bytes()[:-1] + b"\0\0")
    assert compute_file_digest(first) != compute_file_digest(second)


def test_a_file_is_no_name_on_the_hub() -> None:
    for name in ("x.gguf", "models/x.Q4_1.GGUF"):
        assert is_gguf(name)
        assert not has_hub_form(name)
        assert not is_hub_name(name)
    assert not is_gguf("models/x-gguf")


@pytest.mark.parametrize("kept", [0, 10, 3000, 0.9])
def test_a_file_that_is_cut_off_is_refused(tmp_path: Path, kept: float) -> None:
    file = tmp_path / "small.gguf"
    write_gguf(file)
    content = file.read_bytes()
    file.write_bytes(content[: int(kept if kept > 1 else kept * len(content))])
    with pytest.raises(
        ModelError, match=r"small.gguf: damaged or not in GGUF, .* download it again"
    ):
        load_pretrained("decoder", str(file), None)


def test_a_file_that_lacks_weights_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "small.gguf"
    write_gguf(file, without="blk.1.ffn_up")
    with pytest.raises(ModelError, match=r"missing from the file: .*layers.1.mlp.up_proj"):
        dequantise("decoder", str(file), tmp_path / "folder", "w", print)
    assert not (tmp_path / "folder").exists()


def test_validate_reads_it_and_says_what_does_not_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "small.gguf"
    write_gguf(file)
    study = {
        "study": "gguf",
        "results": str(tmp_path / "results"),
        "datasets": {"DailyDialog": {}},
        "models": [{"name": "m", "family": "decoder", "checkpoint": str(file), "max_length": 100}],
    }
    config = tmp_path / "study.yaml"
    for changes, told in (
        ({}, "ok, study gguf"),
        ({"family": "encoder"}, "set family: decoder"),
        ({"max_length": 500}, "set max_length: 128 or less"),
        ({"checkpoint": str(tmp_path / "none.gguf")}, "no file "),
    ):
        config.write_text(
            yaml.safe_dump({**study, "models": [{**study["models"][0], **changes}]})  # type: ignore[dict-item]
        )
        cli.main(["validate", "--config", str(config)])
        said = capsys.readouterr()
        assert told in said.out + said.err, said.err
