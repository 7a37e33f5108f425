"""A small GGUF file for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, dequantize, quantize
from tokenizers.pre_tokenizers import ByteLevel

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
