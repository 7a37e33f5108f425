"""Small studies that set every key of their design to another value than its default."""

from __future__ import annotations

from typing import Any

ENCODER = {"family": "encoder", "checkpoint": "tiny", "max_length": 64, "max_unknown_words": 1.0}
TRAINING: dict[str, Any] = {
    "learning_rate": 2e-3,
    "schedule": "cosine",
    "warmup": 0.1,
    "weight_decay": 0.02,
    "batch_size": 8,
    "max_grad_norm": 2.0,
    "precision": "float32",
    "dropout": 0.2,
    "limit_train": 24,
    "limit_dev": 8,
    "deterministic": True,
    "gradient_checkpointing": True,
}
TINY_WORLD = {"release": "tiny_world", "few_sample": False}

TRANSFER: dict[str, Any] = {
    "study": "every key of transfer",
    "results": "out",
    "data": {**TINY_WORLD, "tiny_world": {"seed": 1, "dialogues": 121},
             "releases": {"Friends": "friends"}},
    "datasets": {
        "DailyDialog": {"tasks": ["emotion_recognition", "causal_emotion_span_extraction",
                                  "dialogue_nli"],
                        "pairs": [{"source": "dialogue_nli", "target": "emotion_recognition"}]},
        "Friends": {"tasks": ["question_answering", "personality_detection"],
                    "sources": ["question_answering"], "targets": ["personality_detection"]},
    },
    "models": [
        {**ENCODER, "name": "tiny", "reads": "mean"},
        {"name": "writer", "family": "decoder", "checkpoint": "tiny", "max_length": 300,
         "max_unknown_words": 1.0,
         "adapter": {"kind": "lora", "rank": 2, "alpha": 3.0, "target_modules": ["c_attn"],
                     "dropout": 0.1, "start": "stack", "learning_rate": 1e-2}},
        {"name": "chat", "family": "decoder", "checkpoint": "tiny", "max_length": 300,
         "max_unknown_words": 1.0, "trained": False},
    ],
    "algorithms": ["pretrain_finetune"],
    "controls": ["longer_baseline"],
    "selectors": ["size"],
    "seeds": [3],
    "baseline_seeds": [3, 4],
    "training": {
        **TRAINING,
        "epochs": {"DailyDialog": 1, "Friends": 2},
        "min_updates": 4,
        "round_updates": 2,
        "patience": 3,
        "head_learning_rate": 5e-3,
        "head_initialization": "logistic_regression",
        "task_weighting": "none",
        "loss_on": "sequence",
        "limit_test": 6,
        "optimiser_bits": 8,
        "fidelity": {
            "setting": "tlidb", "scoring": "default", "multi_label": "sigmoid",
            "backbone_dropout": True, "head_init": "xavier", "batches_per_update": 3,
            "leftover_batches": "own_update", "weighting_when_finetuning": True,
            "selection_metrics": "release", "several_answers": "drawn",
            "truncated_spans": "first_token", "span_choice": "edges", "inputs": "tlidb",
            "answers": "tlidb", "repetition_penalty": 1.5, "generation_length": "tlidb",
            "exp3_steps": "released",
        },
    },
    "multi_source": {
        "mode": "named",
        "named": [{"dataset": "DailyDialog", "target": "emotion_recognition",
                   "sources": ["dialogue_nli", "causal_emotion_span_extraction"]}],
        "algorithms": ["exp3"],
    },
    "checkpoints": {"keep": ["baseline", "finetune"]},
    "prompted": [{"model": "chat", "shots": [1], "test_data_seen": {"DailyDialog": "no"},
                  "chat": "no", "max_length": 480, "limit_test": 5}],
}  # fmt: skip

ACROSS: dict[str, Any] = {
    "study": "every key of own data and of pairs of datasets",
    "data": {"tiny_world": {"dialogues": 120}},
    "datasets": {
        "DailyDialog": {"tasks": ["emotion_recognition", "topic_classification"]},
        "Friends": {"tasks": ["emory_emotion_recognition"]},
        "Own": {
            "files": {"train": "train.jsonl", "dev": "dev.jsonl", "test": "test.jsonl"},
            "dialogue": {"turns": "turns", "text": "text", "speaker": "who", "id": "id"},
            "few_sample": {"instances": 20, "seed": 1},
            "tasks": {"mood": {"kind": "dialogue_classification", "label": "mood"}},
        },
        "Rows": {
            "files": {"train": "rows.json"},
            "shares": {"dev": 0.2, "test": 0.3, "seed": 2},
            "dialogue": {"rows": "scenes[]", "text": "text", "speaker": "who", "order": "turn",
                         "id": {"field": "chat", "per": "file"}, "skip": "empty"},
            "few_sample": {"share": 0.8, "seed": 1},
            "tasks": {"tone": {"kind": "utterance_classification", "label": "tone"}},
        },
    },
    "models": [{**ENCODER, "name": "tiny"}],
    "algorithms": ["pretrain_finetune"],
    "sources": ["DailyDialog/*", "Friends/*"],
    "targets": ["Own/mood", "Rows/tone"],
    "allow_leaks": ["DailyDialog > Friends"],
    "racing": {"seeds": [1, 2], "keep": [0.5]},
    "seeds": 2,
    "training": {"recipe": "auto", "updates": 3, "limit_train": 16, "limit_dev": 4},
}  # fmt: skip

BUILT = {"layers": 1, "hidden": 16, "heads": 2, "feed_forward": 24, "positions": 80,
         "vocabulary_size": 400, "vectors": "vectors.txt"}  # fmt: skip
WRITER = {"family": "encoder_decoder", "checkpoint": "built", "max_length": 32}
RETRIEVER = {"family": "dual_encoder", "checkpoint": "built", "max_length": 32,
             "architecture": BUILT}  # fmt: skip
SHORT = {"learning_rate": 1e-3, "batch_size": 6, "epochs": 1, "limit_train": 12, "limit_dev": 4}
FIDELITY = {
    "setting": "tlidb", "scoring": "default", "backbone_dropout": True, "head_init": "xavier",
    "batches_per_update": 1, "leftover_batches": "own_update",
}  # fmt: skip
"""Fidelity switches that change numbers in several designs."""

EMPATHETIC: dict[str, Any] = {
    "study": "every key of empathetic",
    "design": "empathetic",
    "results": "out",
    "data": {**TINY_WORLD, "tiny_world": {"seed": 1, "dialogues": 200},
             "releases": {"ReplyPairs": "pairs", "Newsgroups": "news"}},
    "models": [
        {**RETRIEVER, "name": "retriever"},
        {**RETRIEVER, "name": "retriever-beside", "second_encoder": "reader"},
        {**WRITER, "name": "writer", "architecture": {**BUILT, "decoder_layers": 1}},
        {**WRITER, "name": "writer-beside", "architecture": {**BUILT, "decoder_layers": 1},
         "second_encoder": "reader"},
        {**WRITER, "name": "large", "architecture": {**BUILT, "decoder_layers": 2}},
        {**ENCODER, "name": "reader"},
        {**ENCODER, "name": "chat", "family": "decoder", "max_length": 300},
    ],
    "seeds": [5],
    "training": {
        **TRAINING, "head_learning_rate": 5e-3, "patience": 2, "epochs": 1, "optimiser": "adam",
        "optimiser_bits": 8, "cosine_scale": 5.0,
        "fidelity": {**FIDELITY, "selection_metrics": "release"},
    },
    "retrieval": {**SHORT, "model": "retriever", "ensemble": "retriever-beside",
                  "methods": ["pretrained", "base", "multitask", "emoprepend-1",
                              "topicprepend-1", "ensemble-tuned"]},
    "generation": {**SHORT, "model": "writer", "large_model": "large", "ensemble": "writer-beside",
                   "methods": ["base", "base-large", "ensemble-plain"]},
    "classifier": {**SHORT, "model": "reader"},
    "pretraining": {**SHORT, "dataset": "ReplyPairs", "retrieval": True},
    "emotions": {"learning_rate": 0.3, "epochs": 2},
    "topics": {"learning_rate": 0.2, "epochs": 2, "dataset": "Newsgroups"},
    "evaluation": {"block": 10, "shuffles": 3, "pools": ["R"], "pool_words": 15, "limit": 20,
                   "limit_generated": 4, "limit_pool": 30,
                   "decoding": {"groups": 2, "beams": 1, "diversity_penalty": 0.3, "max_words": 6}},
    "controls": ["gold", "random", "untrained", "longer"],
    "prompted": [{"model": "chat", "chat": "no", "max_length": 250, "template": 2,
                  "test_data_seen": "no"}],
    "human": {"ratings": "ratings.csv", "choices": "choices.csv"},
    "release_compat": True,
    "checkpoints": {"keep": "all"},
}  # fmt: skip

STAGE = {"learning_rate": 1e-3, "epochs": 1, "round_updates": 2, "patience": 1, "batch_size": 8}
PANEL: dict[str, Any] = {
    "study": "every key of panel",
    "design": "panel",
    "results": "out",
    "data": {**TINY_WORLD, "tiny_world": {"seed": 1, "dialogues": 120},
             "leaks": {"min_words": 5, "drop": False}},
    "models": [{**ENCODER, "name": "tiny", "reads": "first_token"},
               {**ENCODER, "name": "judge", "family": "decoder", "max_length": 256}],
    "seeds": [2],
    "training": {
        **TRAINING, "head_learning_rate": 5e-3, "limit_test": 12, "optimiser_bits": 8,
        "fidelity": {**FIDELITY, "batches_per_update": 3, "weighting_when_finetuning": True},
        "task_weighting": "none",
    },
    "domains": ["Harbour", "Orchard"],
    "rated_sets": ["Harbour_Tiny", "Orchard_Tiny", "Market_Tiny"],
    "methods": ["panel", "collection", "single", "panel-mean", "panel-max", "panel-min", "twin"],
    "reduction": 8,
    "pairs": {"train": 24, "dev": 8, "candidates_per_pair": 2.0, "labels": "labeller",
              "min_probability": 0.5,
              "perturbations": ["shuffle", "repeat"], "seed": 3},
    "labeller": {**STAGE, "epochs": 20, "patience": 100, "model": "tiny", "limit_train": 300,
                 "limit_dev": 40, "two_towers": True},
    "joint": {**STAGE, "sampler": "uniform"},
    "experts": STAGE,
    "twin": {**STAGE, "epochs": 2, "perturbations": ["drop", "random_utterance"]},
    "few_shot": {"sets": ["Market_Tiny"], "percentages": [20], "draws": 1,
                 "sampling_units": ["items"],
                 "learning_rate": 1e-3, "batch_size": 4, "epochs": 1, "patience": 1,
                 "train_encoder": True},
    "selection": {"domain": "Harbour", "personas": ["none"], "candidates": 3, "limit_train": 8,
                  "limit_test": 4, "cosine": True},
    "prompted": [{"model": "judge", "chat": "no", "max_length": 200, "test_data_seen": "no"}],
    "controls": ["untrained", "leaky", "exchanged", "embeddings"],
    "checkpoints": {"keep": ["expert"]},
}  # fmt: skip

LSTM = {"kind": "lstm", "embedding": 8, "units": 8, "layers": 1, "min_count": 2}
TRANSFORMER = {"kind": "transformer", "embedding": 8, "units": 8, "layers": 1, "heads": 1,
               "feed_forward": 16, "dropout": 0.1}  # fmt: skip
PROBES: dict[str, Any] = {
    "study": "every key of probes",
    "design": "probes",
    "results": "out",
    "data": {"release": "world", "few_sample": False, "tiny_world": {"seed": 1, "dialogues": 121}},
    "corpora": ["MultiWOZ"],
    "models": [
        {"name": "LSTM", "family": "encoder_decoder", "max_length": 60, "architecture": LSTM},
        {"name": "Transformer", "family": "encoder_decoder", "max_length": 60,
         "architecture": TRANSFORMER},
        {**ENCODER, "name": "as-it-is", "layers": [0, 2], "pooling": "first"},
    ],
    "seeds": [2],
    "training": {
        **{k: v for k, v in TRAINING.items() if k != "gradient_checkpointing"},
        "epochs": 2, "limit_test": 8, "optimiser_bits": 8,
        "fidelity": {"setting": "tlidb", "batches_per_update": 1, "leftover_batches": "own_update"},
    },
    "probes": {"tasks": ["RecentTopic", "Coin"], "control": True, "snapshots": ["best", 1],
               "release_compat": True, "C": 0.5, "max_iter": 20, "mlp": True,
               "bag_of_words": False, "limit_train": 20, "word_vectors": "vectors.txt",
               "human_judgements": "judgements.csv",
               "wordcont_text": "target"},
    "checkpoints": {"keep": "all"},
}  # fmt: skip

STUDIES = {
    "transfer": TRANSFER,
    "across": ACROSS,
    "empathetic": EMPATHETIC,
    "panel": PANEL,
    "probes": PROBES,
}
