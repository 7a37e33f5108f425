"""Ratings of new responses by a trained panel: its experts, the merged model and the twin."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tasktransfer.core.nodes import Data, Outcome, Stage
from tasktransfer.core.runs import Run
from tasktransfer.designs.panel import inputs
from tasktransfer.designs.panel.config import get_config
from tasktransfer.designs.panel.pairs import build_pairs
from tasktransfer.designs.panel.sources.pair_instances import FITS, make_instance, read_pair
from tasktransfer.designs.panel.sources.texts import split_context
from tasktransfer.errors import ConfigError, DataError, ModelError
from tasktransfer.files import replace_file
from tasktransfer.files.data_files import read_json_lines
from tasktransfer.results.study import Study


def rate_pairs(
    study: Study, file: Path, seed: int | None, threads: int
) -> Iterator[dict[str, Any]]:
    """Rate pairs of context and response with a study's trained models.

    Args:
        study: a panel study.
        file: one JSON object per line, with ``context`` (texts), ``response`` and optionally
            ``domain``.
        seed: seed of the experts; None for the study's first seed.
        threads: number of CPU threads.

    Yields:
        Each line with ``experts`` (domain → 0 to 1), ``panel`` (the expert of the line's domain, or
        the mean of all experts, as in section IV-D), ``merged`` (one model of averaged weights) and
        ``twin``. Methods that the study does not have, or whose checkpoint it did not keep, are
        left out.

    Raises:
        ConfigError: the study has neither a panel nor a twin of this seed.
        DataError: a line is not a pair (the message has file and line), or there is no line.
        ModelError, RecordError: an expert is missing, or has changed since its training.
    """
    from tasktransfer.evaluation.instance_predictions import predict_outcome_numbers  # noqa: PLC0415  # imports torch
    from tasktransfer.jobs.node_jobs import build_evaluation_inputs  # noqa: PLC0415

    experts, others = _find_raters(study, seed)
    lines = list(read_json_lines(file))
    instances = []
    domains = get_config(study).domains
    for number, row, where in lines:
        context, response = read_pair(row, where)
        if row.get("domain") not in (None, *domains):
            problem = f"{row['domain']!r:.60} is not a domain of the study"
            remedy = f"use one of {', '.join(domains)}, or omit the key"
            raise where.at("domain").error(problem, remedy)
        name = str(number)
        instances.append(make_instance("", name, name, context, response, FITS))
    if not instances:
        raise DataError(
            f"{file}: The file has no pairs. Write one JSON object per line: "
            '{"context": ["Hi.", "How are you?"], "response": "Fine."}'
        )

    def rate_with(run: Run) -> list[float]:
        (node,) = run.evaluations
        assert isinstance(node.of, Outcome)
        return predict_outcome_numbers(
            node, node.of, build_evaluation_inputs(study, node, threads), instances
        )

    ratings = {domain: rate_with(run) for domain, run in experts.items()}
    alone = {name: rate_with(run) for name, run in others.items()}
    for index, (_, row, _) in enumerate(lines):
        rated = dict(row)
        if ratings:
            each = {domain: values[index] for domain, values in ratings.items()}
            panel = each.get(str(row.get("domain")), sum(each.values()) / len(each))
            rated |= {"experts": each, "panel": panel}
        yield rated | {name: values[index] for name, values in alone.items()}


def _find_raters(study: Study, seed: int | None) -> tuple[Mapping[str, Run], Mapping[str, Run]]:
    """Return the runs of the experts by domain, and of the merged model and the twin."""
    config = get_config(study)
    chosen = config.seeds[0] if seed is None else seed
    runs = [run for run in study.plan.runs if run.seed == chosen]
    experts = {str(run.about["domain"]): run for run in runs if run.method == "panel"}
    named = {"panel-mean": "merged", "twin": "twin"}
    others = {named[run.method]: run for run in runs if run.method in named}
    if not experts and "twin" not in others:
        raise ConfigError(
            f"{study.config_file}: The study trains neither the method panel nor the method twin "
            f"with seed {chosen}. The methods of the study are {', '.join(config.methods)}, and "
            f"the seeds are {', '.join(map(str, config.seeds))}. Choose another seed, or add "
            "panel or twin to the key methods."
        )
    for domain, run in experts.items():
        (expert,) = (node for node in run.judged if isinstance(node, Stage))
        folder = Path(study.get_checkpoint_folder(expert))
        if not folder.is_dir():
            raise ModelError(
                f"{folder}: The expert for {domain} is missing, but a panel needs all of its "
                "experts. Set checkpoints.keep: [expert] in the config, and run the study again."
            )
    twin = others.get("twin")
    if twin is not None and not Path(study.get_checkpoint_folder(twin.stages[-1])).is_dir():
        if not experts:
            raise ModelError(
                f"{study.get_checkpoint_folder(twin.stages[-1])}: The checkpoint of the method "
                "twin is missing. Set checkpoints.keep: [twin] in the config, and run the study "
                "again."
            )
        del others["twin"]
    return experts, others


def write_pairs(study: Study, folder: Path) -> list[Path]:
    """Write the pairs that need labels, one file per domain.

    The files have the format of ``probabilities/`` in a release, without the probability.

    Raises:
        DataError: the filtered dialogues do not exist yet.
    """
    config = get_config(study)
    every = (data for data in study.plan.derived if data.recipe == inputs.PAIRS)
    made = next(data for data in every if inputs.is_for_paper_methods(config, data))
    filtered = made.uses[0]
    assert isinstance(filtered, Data)
    cache = Path(study.get_cache_folder(filtered))
    if not cache.is_dir():
        raise DataError(
            f"{cache}: The filtered dialogues do not exist yet. Create the dialogues with "
            f"`snakemake {study.get_record_path(filtered)} --cores 1 --configfile "
            f"{study.config_file}`."
        )
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for domain in config.domains:
        rows = [
            {
                "context": list(split_context(one.context, one.turns)),
                "response": one.query["response"],
                "how": one.query["how"],
            }
            for split in ("train", "dev")
            for one in build_pairs(cache, domain, split, made.settings)[0]
        ]
        file = folder / f"{domain}.jsonl"
        with replace_file(file) as part:
            part.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        written.append(file)
    return written
