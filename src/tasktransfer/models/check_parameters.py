"""Checks that a checkpoint's parameters are those of its model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import torch

from tasktransfer.core.specs import Family
from tasktransfer.errors import ModelError

Note = Callable[[str], None]

POOLER_OR_HEAD = re.compile(
    r"(\w*pooler|cls|\w*heads?|\w*classifier|\w*predictions?|pred_layer|vocab_\w+|qa_outputs|score"
    r"|lm_loss|logits_proj|sequence_summary|final_logits_bias|\w+_qass|(dense|decoder)\.(weight|bias)$)"
    r"\b"
)
"""Names of the modules that transformers' classes put on top of a backbone.

Examples are ``cls`` of BERT, ``lm_head`` of RoBERTa, ``vocab_projector`` of DistilBERT,
``generator_predictions`` of ELECTRA, ``pred_layer`` of XLM and ``decoder`` of ModernBERT. They are
matched at the beginning of a parameter's name, after the backbone's prefix if there is one."""

OLD_BUFFER = re.compile(r"(.*\.)?(masked_bias|position_ids|inv_freq)$")
"""Constants that earlier versions of transformers saved like weights."""

MAX_SHOWN = 5
"""Maximum number of parameters that a message lists."""


def check_parameters(
    family: Family, model: Any, report: dict[str, Any], start: str, note: Note
) -> None:
    """Raise ModelError if a checkpoint's parameters are missing, unexpected or misshapen.

    An encoder's pooler and heads may be missing or unused, because its tasks have their own heads.
    Models that generate text need their language-model head.
    """
    missing, unexpected = sorted(report["missing_keys"]), sorted(report["unexpected_keys"])
    own = f"{model.base_model_prefix}."
    fresh = [p for p in missing if _can_be_missing(family, p)]
    unused = [
        p for p in unexpected if POOLER_OR_HEAD.match(p.removeprefix(own)) or OLD_BUFFER.match(p)
    ]
    if fresh:
        modules = _format_modules(fresh)
        verb = "are" if ", " in modules else "is"
        note(f"The checkpoint lacks {modules}, which {verb} initialised at random.")
    if unused:
        note(f"The weights {_format_modules(unused)} of the checkpoint are not used.")
    missing = [p for p in missing if p not in fresh]
    unexpected = [p for p in unexpected if p not in unused]
    shapes = sorted(report["mismatched_keys"])
    if not (missing or unexpected or shapes):
        return
    parts = [
        _format_items("missing in the file", missing),
        _format_items("unknown to the model", unexpected),
        _format_items(
            "of another shape", [f"{p} {[*have]}, not {[*want]}" for p, have, want in shapes]
        ),
    ]
    raise ModelError(
        f"{start}: The weights do not match config.json ({model.config.model_type}; "
        f"{'; '.join(part for part in parts if part)}). "
        f"{_describe_likely_cause(model, missing, unexpected)}"
    )


def _can_be_missing(family: Family, parameter: str) -> bool:
    if parameter == "final_logits_bias":  # a buffer of zeros, missing in old BART checkpoints
        return True
    return family == "encoder" and POOLER_OR_HEAD.match(parameter) is not None


def _describe_likely_cause(model: Any, missing: list[str], unexpected: list[str]) -> str:
    """Describe the likely cause of a mismatch between weights and config, with a remedy."""
    from transformers import CONFIG_MAPPING

    own = f"{model.base_model_prefix}."
    there = set(model.state_dict()) - {*missing}
    kinds = {_mask_layer_number(name.removeprefix(own)) for name in there}
    missing, unexpected = ([p.removeprefix(own) for p in names] for names in (missing, unexpected))
    if missing and not unexpected:
        if {_mask_layer_number(p) for p in missing} <= kinds:
            return (
                "Whole layers are missing, because config.json specifies more layers than the file "
                "has. Use config.json and weights from the same checkpoint."
            )
        if all(POOLER_OR_HEAD.match(p) for p in missing):
            return "The model was saved without its head. Save it with its language-model head."
        return "The file is incomplete. Copy or download the checkpoint again."
    if unexpected and not missing:
        if {_mask_layer_number(p) for p in unexpected} <= kinds:
            return (
                "config.json specifies fewer layers than the file has. Use config.json and "
                "weights from the same checkpoint."
            )
        return (
            "This architecture has no such weights, so another model or an adapter was saved with "
            "it. Save only the model itself with save_pretrained."
        )
    if missing:
        wrapper = unexpected[0].partition(".")[0]
        # Tied embeddings are stored only once in the file.
        below = sum(_is_below_wrapper(p, wrapper, unexpected) for p in missing)
        foreign = wrapper in CONFIG_MAPPING and wrapper != model.base_model_prefix
        if not foreign and 2 * below > len(missing):
            return (
                f"Every name begins with '{wrapper}.', the prefix of a wrapper (DataParallel, a "
                "training class). Save the wrapped model itself."
            )
        return (
            "The weights belong to another architecture. Use config.json and weights from the same "
            "checkpoint."
        )
    return (
        "The sizes in config.json differ from the sizes in the file. Use both from the same "
        "checkpoint, and set vocab_size to the vocabulary size of its tokenizer."
    )


def _is_below_wrapper(parameter: str, wrapper: str, unexpected: Iterable[str]) -> bool:
    """Return whether a parameter exists under the prefix of a wrapper or backbone."""
    return any(p.startswith(wrapper) and p.endswith(f".{parameter}") for p in unexpected)


def _mask_layer_number(parameter: str) -> str:
    return re.sub(r"\.\d+\.", ".*.", parameter)


def _format_modules(parameters: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(p.rpartition(".")[0] or p for p in parameters))


def _format_items(what: str, items: list[str]) -> str:
    if not items:
        return ""
    more = f" and {len(items) - MAX_SHOWN} more" if len(items) > MAX_SHOWN else ""
    listed = f"{', '.join(items[:MAX_SHOWN])}{more}"
    return f"{what}: {listed}" if what else listed


def check_finite(model: Any, start: str) -> None:
    """Raise ModelError if any weight is NaN or infinite."""
    bad = [n for n, p in model.state_dict().items() if not torch.isfinite(p).all()]
    if bad:
        raise ModelError(
            f"{start}: The checkpoint contains weights that are NaN or infinite "
            f"({_format_items('', bad)}), because it is damaged, or the training that wrote it "
            "diverged. Use an earlier or another checkpoint."
        )
