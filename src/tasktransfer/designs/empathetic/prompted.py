"""Replies of prompted language models: their evaluations, and the frame ``prompted``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tasktransfer.core.identity import Settings
from tasktransfer.core.nodes import Data, Evaluation, Outcome
from tasktransfer.core.runs import Run
from tasktransfer.designs.empathetic.config import EmpatheticConfig, get_config
from tasktransfer.designs.empathetic.methods import PROMPTED
from tasktransfer.designs.empathetic.prompted_section import PromptedReplier
from tasktransfer.designs.empathetic.sources.cards import REPLY, TURN
from tasktransfer.results.costs import compute_seconds, sum_tokens
from tasktransfer.results.frames import Frames
from tasktransfer.results.revisions import Revisions
from tasktransfer.tasks.asking import compute_wording_digest, get_wordings

Values = tuple[Any, ...]


def plan_prompted_repliers(
    config: EmpatheticConfig, revisions: Revisions, data: Data, seed: int
) -> Iterator[Run]:
    """Yield the runs of prompted models, whose single evaluation is compared with every seed.

    Generated replies are evaluated on the contexts of Base's replies. P@1 and the perplexity need
    the likelihood of given replies, so they are computed only for models on this machine.

    Args:
        data: the dialogues.
    """
    setting, items = config.replier_comparison
    for replier in config.prompted:
        outcome = Outcome((), model=replier.to_spec(revisions.models))

        def plan(
            measures: tuple[str, ...],
            settings: Settings,
            limit: int | None = None,
            replier: PromptedReplier = replier,
            outcome: Outcome = outcome,
        ) -> Evaluation:
            asked = _make_prompt_settings(replier, limit)
            both = {**settings, "asked": asked}
            return Evaluation(outcome, data, REPLY.name, measures, settings=both)

        by_setting = {setting: [plan(("bleu",), items, items.get("limit"))]}
        if replier.endpoint is None:
            perplexity = plan(("word_perplexity",), {}, config.evaluation.limit)
            by_setting.setdefault("generation", []).append(perplexity)
            if config.retrieval is not None:
                ranked = plan(("p_at_1", "p_at_1_permuted"), _make_block_settings(config))
                by_setting.setdefault("retrieval", []).append(ranked)
        for name, evaluations in by_setting.items():
            about = {"setting": name}
            yield Run(
                *(replier.model, PROMPTED, seed, about, outcome, tuple(evaluations)), variant=name
            )


def _make_prompt_settings(replier: PromptedReplier, limit: int | None) -> Settings:
    """Return the settings of an evaluation that prompts a model: template, shots and limit."""
    index = replier.template - 1
    settings = {
        "shots": 0,
        "wording": index,
        "prompt": compute_wording_digest(REPLY, get_wordings(REPLY)[index]),
        "turn_separator": TURN,
        **replier.get_evaluation_settings(),
    }
    return settings if limit is None else {**settings, "limit_test": limit}


def _make_block_settings(config: EmpatheticConfig) -> Settings:
    """Return the settings that divide test contexts into blocks of candidates for P@1."""
    evaluation = config.evaluation
    settings = {"block": evaluation.block}
    if evaluation.limit:
        settings["blocks"] = evaluation.limit // evaluation.block
    if config.release_compat:
        settings["drop_last_block"] = True
    return settings


def make_prompted(frames: Frames) -> Iterator[Values]:
    """Yield the rows of the frame ``prompted``, one per prompted model and measure."""
    collected = frames.collected
    repliers = {replier.model: replier for replier in get_config(frames.study).prompted}
    first = min(run.seed for run in collected.study.plan.runs)
    for run in collected.study.plan.runs:
        if run.model != PROMPTED or run.seed != first:
            continue
        replier = repliers[run.method]
        for node in run.evaluations:
            if not collected.has_record(node):
                continue
            record = collected.record(node)
            counts, result = record["report"]["prompting"], record["results"][node.task]
            cost = (
                100 * counts["unreadable"] / max(1, counts["questions"]),
                *(sum_tokens(counts), compute_seconds(record), replier.test_data_seen),
            )
            for measure, value in result["measures"].items():
                yield run.method, replier.template, measure, value, result["instances"], *cost
