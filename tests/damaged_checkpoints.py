"""Ways in which a checkpoint's folder can be invalid, each with the expected error."""

from __future__ import annotations

import json

import torch

from checkpoint_damage import (
    WEIGHTS,
    Bad,
    another_vocabulary,
    no_padding,
    one_value,
    tokenizer_a_folder,
    weights_of,
    with_bytes,
    with_json,
    with_weights,
    without,
    without_head,
    without_merges,
    words,
)

FIT = r"The weights do not match config\.json"
CASES = [
    Bad(
        "no tokenizer, BERT",
        "bert",
        r"no tokenizer\.json, vocab\.txt or similar.*Copy the",
        without("tokenizer*", "special*"),
    ),
    Bad(
        "no merges, RoBERTa", "roberta", r"no merges\.txt next to vocab\.json.*Copy", without_merges
    ),
    Bad(
        "no tokenizer, GPT-2",
        "gpt2",
        r"vocabulary is missing.*Copy",
        without("tokenizer*", "special*"),
        "decoder",
    ),
    Bad(
        "no tokenizer, T5",
        "t5",
        r"no tokenizer\.json.*Copy",
        without("tokenizer*", "special*"),
        "encoder_decoder",
    ),
    Bad(
        "no tokenizer, Llama",
        "llama",
        r"tokenizer.*(Copy|holds)",
        without("tokenizer*", "special*"),
        "decoder",
    ),
    Bad(
        "another kind of tokenizer",
        "bert",
        r"no tokenizer\.json or vocab\.txt.*Copy",
        another_vocabulary,
    ),
    Bad(
        "garbage tokenizer",
        "bert",
        r": The tokenizer cannot be read",
        with_bytes("tokenizer.json", lambda b: b[:200]),
    ),
    Bad(
        "prefix module.",
        "bert",
        FIT + r".*missing in the file: embeddings.*begins with 'module\.'.*Save the wrapped",
        with_weights(lambda w: {f"module.{n}": t for n, t in w.items()}),
    ),
    Bad(
        "prefix module., tied embeddings",
        "gpt2",
        FIT + r".*begins with 'module\.'.*Save the wrapped",
        with_weights(lambda w: {f"module.{n}": t for n, t in w.items()}),
        "decoder",
    ),
    Bad(
        "another architecture's, of the same layers",
        "bert",
        FIT + r".*another architecture",
        weights_of("roberta"),
    ),
    Bad(
        "prefix model., backbone alone",
        "roberta",
        FIT + r".*begins with 'wrapped\.'",
        with_weights(lambda w: {f"wrapped.{n}": t for n, t in w.items()}),
    ),
    Bad(
        "another architecture's",
        "bert",
        FIT + r".*another architecture.*same checkpoint",
        weights_of("distilbert"),
    ),
    Bad(
        "another architecture's decoder",
        "gpt2",
        FIT + r".*same checkpoint",
        weights_of("opt"),
        "decoder",
    ),
    Bad(
        "a missing layer",
        "bert",
        FIT + r".*missing in the file: encoder\.layer\.1.*more layers than the file",
        with_weights(lambda w: {n: t for n, t in w.items() if ".layer.1." not in n}),
    ),
    Bad(
        "a missing layer, T5",
        "t5",
        FIT + r".*more layers than the file",
        with_weights(lambda w: {n: t for n, t in w.items() if "decoder.block.1." not in n}),
        "encoder_decoder",
    ),
    Bad(
        "more layers than config.json",
        "bert",
        FIT + r".*fewer layers than the file",
        with_json("config.json", num_hidden_layers=1),
    ),
    Bad(
        "more layers than config.json, GPT-2",
        "gpt2",
        FIT + r".*fewer layers than the file",
        with_json("config.json", n_layer=1),
        "decoder",
    ),
    Bad(
        "of images", "bert", "have no token embeddings", with_json("config.json", model_type="vit")
    ),
    Bad("tokenizer.json a folder", "bert", r"no tokenizer\.json", tokenizer_a_folder),
    Bad(
        "a garbage config.json of the tokenizer",
        "bert",
        r": The tokenizer cannot be read.*Copy or download",
        with_bytes("tokenizer_config.json", lambda b: b"{x"),
    ),
    Bad(
        "no embeddings",
        "bert",
        FIT + r".*word_embeddings.*incomplete",
        with_weights(lambda w: {n: t for n, t in w.items() if "word_embeddings" not in n}),
    ),
    Bad(
        "a foreign tensor",
        "bert",
        FIT + r".*unknown to the model: .*intruder\.weight.*This architecture has no such",
        with_weights(lambda w: {**w, "intruder.weight": torch.ones(3)}),
    ),
    Bad(
        "a foreign tensor in a layer",
        "gpt2",
        FIT + r".*adapter",
        with_weights(lambda w: {**w, "transformer.h.0.adapter.weight": torch.ones(3)}),
        "decoder",
    ),
    Bad(
        "another hidden size",
        "bert",
        FIT + r".*of another shape: .*\[64, 32\], not \[48, 32\].*sizes in config\.json differ",
        with_json("config.json", intermediate_size=48),
    ),
    Bad(
        "another vocabulary size",
        "bert",
        FIT + r".*of another shape: .*word_embeddings.*vocab_size",
        with_json("config.json", vocab_size=2000),
    ),
    Bad(
        "no language-model head",
        "llama",
        FIT + r".*lm_head\.weight.*Save it with its language-model head",
        without_head,
        "decoder",
        settings={"tie_word_embeddings": False},
    ),
    Bad("GPT-2 as encoder", "gpt2", r"gpt2 is a causal model.*Set family: decoder"),
    Bad(
        "BART as encoder",
        "bart",
        r"bart is a sequence-to-sequence model.*Set family: encoder_decoder",
    ),
    Bad("T5 as encoder", "t5", r"t5 is a sequence-to-sequence model.*Set family: encoder_decoder"),
    Bad(
        "RoBERTa as decoder",
        "roberta",
        r"roberta is a bidirectional model.*attend to later.*Set family: encoder",
        family="decoder",
    ),
    Bad(
        "DistilBERT as decoder",
        "distilbert",
        r"bidirectional model.*Set family: encoder",
        family="decoder",
    ),
    Bad("BART as decoder", "bart", r"Set family: encoder_decoder", family="decoder"),
    Bad(
        "BERT as encoder_decoder",
        "bert",
        r"bidirectional.*Set family: encoder",
        family="encoder_decoder",
    ),
    Bad(
        "GPT-2 as encoder_decoder", "gpt2", r"causal.*Set family: decoder", family="encoder_decoder"
    ),
    Bad("NaN", "bert", r"NaN or infinite.*layer\.1.*diverged.*checkpoint", one_value(float("nan"))),
    Bad("infinite", "bert", r"NaN or infinite.*layer\.1", one_value(float("-inf"))),
    Bad(
        "truncated weights",
        "bert",
        r"model\.safetensors: The file is damaged \(\d+ bytes.*again",
        with_bytes(WEIGHTS, lambda b: b[: len(b) // 2]),
    ),
    Bad(
        "empty weights",
        "bert",
        r"model\.safetensors: The file is damaged \(0 bytes",
        with_bytes(WEIGHTS, lambda b: b""),
    ),
    Bad(
        "garbage weights",
        "bert",
        r"model\.safetensors: The file is damaged",
        with_bytes(WEIGHTS, lambda b: b"\x00\xff" * 500),
    ),
    Bad(
        "weights that may hold code",
        "bert",
        r"no \*\.safetensors file, only pytorch_model\.bin.*save_pretrained",
        lambda folder: (folder / WEIGHTS).rename(folder / "pytorch_model.bin"),
    ),
    Bad(
        "a tokenizer larger than the model",
        "bert",
        r"more than the .* embeddings.*same checkpoint",
        words(1),
    ),
    Bad(
        "a tokenizer far smaller than the model",
        "bert",
        r"tokens, which is less than 50% of.*same checkpoint",
        settings={"vocab_size": 5000},
    ),
    Bad(
        "too few positions, BERT",
        "bert",
        r"positions for 256 tokens.*max_length.*257.*Set max_length to 256",
        max_length=257,
    ),
    Bad(
        "too few positions, RoBERTa",
        "roberta",
        r"positions for 255 tokens.*Set max_length to 255",
        max_length=256,
    ),
    Bad(
        "too few positions, GPT-2",
        "gpt2",
        r"Set max_length to 256",
        family="decoder",
        max_length=300,
    ),
    Bad("no padding token", "bert", r"no padding token. Set pad_token", no_padding),
    Bad(
        "token types for a model without",
        "roberta",
        r"token types.*same checkpoint",
        with_json("tokenizer_config.json", model_input_names=["input_ids", "token_type_ids"]),
        settings={"type_vocab_size": 1},
    ),
    Bad("no config.json", "bert", r"config\.json is missing", without("config.json")),
    Bad(
        "config.json cut off",
        "bert",
        r"config\.json cannot be read",
        with_bytes("config.json", lambda b: b[:100]),
    ),
    Bad(
        "config.json a list",
        "bert",
        r"config\.json cannot be read",
        with_bytes("config.json", lambda b: b"[1, 2]"),
    ),
    Bad(
        "no model_type",
        "bert",
        r"config\.json cannot be read.*model_type.*another checkpoint",
        with_json("config.json", model_type=..., architectures=...),
    ),
    Bad(
        "an unknown architecture",
        "bert",
        r"config\.json cannot be read.*model_type.*another checkpoint",
        with_json("config.json", model_type="nonesuch"),
    ),
    Bad(
        "code of its own",
        "bert",
        r"custom code.*never run",
        with_json("config.json", model_type="nonesuch", auto_map={"AutoConfig": "code.Config"}),
    ),
    Bad(
        "heads that do not divide the width",
        "bert",
        r"cannot be read",
        with_json("config.json", num_attention_heads=5),
    ),
    Bad(
        "a missing shard",
        "bert",
        r"cannot be read.*model-00002|model-00002",
        lambda folder: (
            (folder / "model.safetensors.index.json").write_text(
                json.dumps(
                    {"metadata": {}, "weight_map": {"a": "model-00002-of-00002.safetensors"}}
                )
            )
            and (folder / WEIGHTS).rename(folder / "model-00001-of-00002.safetensors")
        ),
    ),
    *(
        Bad(
            f"{architecture}, {key}: {asked:,}",
            architecture,
            r"config\.json specifies [\d,]+ (layers|parameters).*weight files contain",
            with_json("config.json", **{key: asked}),
            family,
        )
        for architecture, family, key, asked in (
            ("bert", "encoder", "num_hidden_layers", 10**6),
            ("bert", "encoder", "hidden_size", 10**8),
            ("bert", "encoder", "vocab_size", 10**12),
            ("bert", "encoder", "max_position_embeddings", 10**9),
            ("bert", "encoder", "intermediate_size", 10**10),
            ("gpt2", "decoder", "n_layer", 10**12),
            ("t5", "encoder_decoder", "num_decoder_layers", 10**6),
        )
    ),
]
