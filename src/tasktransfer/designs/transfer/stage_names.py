"""Kinds and labels of training stages, for paths and logs."""

from __future__ import annotations

from collections.abc import Mapping

from tasktransfer.core.nodes import Start
from tasktransfer.core.plan import Step


def derive_stage_kind(step: Step, starts: tuple[Start, ...]) -> str:
    """Return the kind of a training stage for paths and logs.

    It depends on the step and not on the algorithm, so that equal stages of two algorithms have one
    name. ``control`` is a stage that no algorithm has, with other data or hyperparameters; its
    checkpoint is not useful outside the study.
    """
    if starts:
        return "finetune"
    if step.data is not None or step.training is not None:
        return "control"
    return "baseline" if len(step.train_tasks) == 1 else "multitask"


def format_stage_label(step: Step, starts: tuple[Start, ...], shorts: Mapping[str, str]) -> str:
    """Return a readable label of a stage, such as ``DNLI``, ``CRE+DNLI`` or ``DNLI_from_CRE``.

    Controls have names like ``DNLI_60_epochs`` or ``DNLI_permuted_answers``.
    """
    text = "+".join(shorts[task] for task in sorted(step.train_tasks))
    if step.training is not None:
        text += f"_{step.training.budget}"
    if step.data is not None:
        text += f"_{step.data.recipe}"
    parents = [start.stage.label for start in starts if start.stage]
    if starts and starts[0].merged:
        return f"{text}_from_{starts[0].merged}_of_{'+'.join(parents)}"
    return "_from_".join([text, *parents])
