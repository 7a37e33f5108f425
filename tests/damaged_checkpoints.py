"""Ways in which a checkpoint's folder can be invalid, each with the expected error."""

from __future__ import annotations

import json
from pathlib import Path

from checkpoint_damage import (
    WEIGHTS,
    Bad,
    Damage,
    another_vocabulary,
    no_padding,
    one_value,
    tokenizer_a_folder,
    weights_of,
    with_bytes,
    with_content,
    with_json,
    with_prefix,
    with_tensor,
    without,
    without_head,
    without_merges,
    without_tensors,
    words,
)

NO_TOKENIZER = without("tokenizer*", "special*")
CONFIG = "config.json"


def misfit(name: str, architecture: str, message: str, damage: Damage, **more: object) -> Bad:
    """Return weights that do not match the config."""
    message = rf"The weights do not match config\.json.*{message}"
    return Bad(name, architecture, message, damage, **more)  # type: ignore[arg-type]


def without_a_shard(folder: Path) -> None:
    index = {"metadata": {}, "weight_map": {"a": "model-00002-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / WEIGHTS).rename(folder / "model-00001-of-00002.safetensors")


TOKENIZERS = [
    Bad("no tokenizer, BERT", "bert", r"no tokenizer\.json, vocab\.txt or similar.*Copy the",
        NO_TOKENIZER),
    Bad("no merges, RoBERTa", "roberta", r"no merges\.txt next to vocab\.json.*Copy",
        without_merges),
    Bad("no tokenizer, GPT-2", "gpt2", r"vocabulary is missing.*Copy", NO_TOKENIZER),
    Bad("no tokenizer, T5", "t5", r"no tokenizer\.json.*Copy", NO_TOKENIZER),
    Bad("no tokenizer, Llama", "llama", r"tokenizer.*(Copy|holds)", NO_TOKENIZER),
    Bad("another kind of tokenizer", "bert", r"no tokenizer\.json or vocab\.txt.*Copy",
        another_vocabulary),
    Bad("garbage tokenizer", "bert", r": The tokenizer cannot be read",
        with_bytes("tokenizer.json", lambda b: b[:200])),
    Bad("tokenizer.json a folder", "bert", r"no tokenizer\.json", tokenizer_a_folder),
    Bad("a garbage config.json of the tokenizer", "bert",
        r": The tokenizer cannot be read.*Copy or download",
        with_content("tokenizer_config.json", b"{x")),
    Bad("a tokenizer larger than the model", "bert",
        r"more than the .* embeddings.*same checkpoint", words(1)),
    Bad("a tokenizer far smaller than the model", "bert",
        r"tokens, which is less than 50% of.*same checkpoint", settings={"vocab_size": 5000}),
    Bad("no padding token", "bert", r"no padding token. Set pad_token", no_padding),
    Bad("token types for a model without", "roberta", r"token types.*same checkpoint",
        with_json("tokenizer_config.json", model_input_names=["input_ids", "token_type_ids"]),
        settings={"type_vocab_size": 1}),
]  # fmt: skip
MISFITS = [
    misfit("prefix module.", "bert",
           r"missing in the file: embeddings.*begins with 'module\.'.*Save the wrapped",
           with_prefix("module.")),
    misfit("prefix module., tied embeddings", "gpt2", r"begins with 'module\.'.*Save the wrapped",
           with_prefix("module.")),
    misfit("another architecture's, of the same layers", "bert", "another architecture",
           weights_of("roberta")),
    misfit("prefix model., backbone alone", "roberta", r"begins with 'wrapped\.'",
           with_prefix("wrapped.")),
    misfit("another architecture's", "bert", "another architecture.*same checkpoint",
           weights_of("distilbert")),
    misfit("another architecture's decoder", "gpt2", "same checkpoint", weights_of("opt")),
    misfit("a missing layer", "bert",
           r"missing in the file: encoder\.layer\.1.*more layers than the file",
           without_tensors(".layer.1.")),
    misfit("a missing layer, T5", "t5", "more layers than the file",
           without_tensors("decoder.block.1.")),
    misfit("more layers than config.json", "bert", "fewer layers than the file",
           with_json(CONFIG, num_hidden_layers=1)),
    misfit("more layers than config.json, GPT-2", "gpt2", "fewer layers than the file",
           with_json(CONFIG, n_layer=1)),
    misfit("no embeddings", "bert", "word_embeddings.*incomplete",
           without_tensors("word_embeddings")),
    misfit("a foreign tensor", "bert",
           r"unknown to the model: .*intruder\.weight.*This architecture has no such",
           with_tensor("intruder.weight")),
    misfit("a foreign tensor in a layer", "gpt2", "adapter",
           with_tensor("transformer.h.0.adapter.weight")),
    misfit("another hidden size", "bert",
           r"of another shape: .*\[64, 32\], not \[48, 32\].*sizes in config\.json differ",
           with_json(CONFIG, intermediate_size=48)),
    misfit("another vocabulary size", "bert", "of another shape: .*word_embeddings.*vocab_size",
           with_json(CONFIG, vocab_size=2000)),
    misfit("no language-model head", "llama",
           r"lm_head\.weight.*Save it with its language-model head", without_head,
           settings={"tie_word_embeddings": False}),
]  # fmt: skip
FAMILIES = [
    Bad("GPT-2 as encoder", "gpt2", r"gpt2 is a causal model.*Set family: decoder",
        family="encoder"),
    Bad("BART as encoder", "bart",
        r"bart is a sequence-to-sequence model.*Set family: encoder_decoder", family="encoder"),
    Bad("T5 as encoder", "t5", r"t5 is a sequence-to-sequence model.*Set family: encoder_decoder",
        family="encoder"),
    Bad("RoBERTa as decoder", "roberta",
        r"roberta is a bidirectional model.*attend to later.*Set family: encoder",
        family="decoder"),
    Bad("DistilBERT as decoder", "distilbert", r"bidirectional model.*Set family: encoder",
        family="decoder"),
    Bad("BART as decoder", "bart", r"Set family: encoder_decoder", family="decoder"),
    Bad("BERT as encoder_decoder", "bert", r"bidirectional.*Set family: encoder",
        family="encoder_decoder"),
    Bad("GPT-2 as encoder_decoder", "gpt2", r"causal.*Set family: decoder",
        family="encoder_decoder"),
    Bad("of images", "bert", "have no token embeddings", with_json(CONFIG, model_type="vit")),
]  # fmt: skip
DAMAGED_WEIGHTS = [
    Bad("NaN", "bert", r"NaN or infinite.*layer\.1.*diverged.*checkpoint", one_value(float("nan"))),
    Bad("infinite", "bert", r"NaN or infinite.*layer\.1", one_value(float("-inf"))),
    Bad("truncated weights", "bert", r"model\.safetensors: The file is damaged \(\d+ bytes.*again",
        with_bytes(WEIGHTS, lambda b: b[: len(b) // 2])),
    Bad("empty weights", "bert", r"model\.safetensors: The file is damaged \(0 bytes",
        with_content(WEIGHTS, b"")),
    Bad("garbage weights", "bert", r"model\.safetensors: The file is damaged",
        with_content(WEIGHTS, b"\x00\xff" * 500)),
    Bad("weights that may hold code", "bert",
        r"no \*\.safetensors file, only pytorch_model\.bin.*save_pretrained",
        lambda folder: (folder / WEIGHTS).rename(folder / "pytorch_model.bin")),
    Bad("a missing shard", "bert", r"cannot be read.*model-00002|model-00002", without_a_shard),
]  # fmt: skip
UNREAD = r"config\.json cannot be read"
CONFIGS = [
    Bad("too few positions, BERT", "bert",
        r"positions for 256 tokens.*max_length.*257.*Set max_length to 256", max_length=257),
    Bad("too few positions, RoBERTa", "roberta",
        r"positions for 255 tokens.*Set max_length to 255", max_length=256),
    Bad("too few positions, GPT-2", "gpt2", r"Set max_length to 256", max_length=300),
    Bad("no config.json", "bert", r"config\.json is missing", without(CONFIG)),
    Bad("config.json cut off", "bert", UNREAD, with_bytes(CONFIG, lambda b: b[:100])),
    Bad("config.json a list", "bert", UNREAD, with_content(CONFIG, b"[1, 2]")),
    Bad("no model_type", "bert", rf"{UNREAD}.*model_type.*another checkpoint",
        with_json(CONFIG, model_type=..., architectures=...)),
    Bad("an unknown architecture", "bert", rf"{UNREAD}.*model_type.*another checkpoint",
        with_json(CONFIG, model_type="nonesuch")),
    Bad("code of its own", "bert", r"custom code.*never run",
        with_json(CONFIG, model_type="nonesuch", auto_map={"AutoConfig": "code.Config"})),
    Bad("heads that do not divide the width", "bert", r"cannot be read",
        with_json(CONFIG, num_attention_heads=5)),
]  # fmt: skip
TOO_LARGE = [
    Bad(
        f"{architecture}, {key}: {asked:,}",
        architecture,
        r"config\.json specifies [\d,]+ (layers|parameters).*weight files contain",
        with_json(CONFIG, **{key: asked}),
    )
    for architecture, key, asked in (
        ("bert", "num_hidden_layers", 10**6),
        ("bert", "hidden_size", 10**8),
        ("bert", "vocab_size", 10**12),
        ("bert", "max_position_embeddings", 10**9),
        ("bert", "intermediate_size", 10**10),
        ("gpt2", "n_layer", 10**12),
        ("t5", "num_decoder_layers", 10**6),
    )
]
CASES = [*TOKENIZERS, *MISFITS, *FAMILIES, *DAMAGED_WEIGHTS, *CONFIGS, *TOO_LARGE]
