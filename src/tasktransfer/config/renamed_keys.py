"""Config keys that have another name than in earlier versions.

Config files use the new names, and an old name is an error that states the new name. Digests use
the old names, so that studies and results keep theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasktransfer.core.validation import extend_path

RENAMED: Mapping[str, str] = {
    "data.leaks.words": "min_words",
    "evaluation.decoding.longest": "max_words",
    "evaluation.decoding.penalty": "diversity_penalty",
    "evaluation.limit_written": "limit_generated",
    "experts.every": "round_updates",
    "few_shot.by": "sampling_units",
    "few_shot.percent": "percentages",
    "few_shot.whole": "train_encoder",
    "generation.large": "large_model",
    "joint.every": "round_updates",
    "labeller.every": "round_updates",
    "labeller.twin": "two_towers",
    "models[].architecture.least_count": "min_count",
    "models[].architecture.words": "vocabulary_size",
    "models[].beside": "second_encoder",
    "pairs.made": "candidates_per_pair",
    "pairs.sure": "min_probability",
    "probes.judgements": "human_judgements",
    "probes.word_in": "wordcont_text",
    "probes.words": "bag_of_words",
    "prompted[].seen": "test_data_seen",
    "rated": "rated_sets",
    "training.fidelity.head_start": "head_init",
    "training.fidelity.lost_spans": "truncated_spans",
    "twin.every": "round_updates",
}
"""Path of the old key → new name of the key. ``[]`` stands for the items of a list."""


def get_new_name(key: str, section: str) -> str:
    """Return the config key for the name of a key in digests."""
    return RENAMED.get(extend_path(section, key), key)


def get_new_path(old: str) -> str:
    """Return a key path in which a renamed key has its new name."""
    return extend_path(old.rpartition(".")[0], RENAMED[old])


_OLD_NAMES = {get_new_path(old): old.rpartition(".")[2] for old in RENAMED}
"""Path of the new key → name of the key in digests."""


def restore_old_names(content: Any, path: str = "") -> Any:
    """Return the content of a config with the key names that digests use.

    Args:
        path: path of the section in the config; empty for the whole config.
    """
    if isinstance(content, Mapping):
        restored = {}
        for key, value in content.items():
            below = extend_path(path, str(key))
            restored[_OLD_NAMES.get(below, key)] = restore_old_names(value, below)
        return restored
    if isinstance(content, list | tuple):
        return type(content)(restore_old_names(item, f"{path}[]") for item in content)
    return content
