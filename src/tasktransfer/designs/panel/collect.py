"""Frames of a panel study's records: ratings, choices, transfers, pairs, leaks and trainings."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from tasktransfer.core.nodes import Data, Evaluation, Stage
from tasktransfer.core.runs import Run
from tasktransfer.data.cache import read_instances
from tasktransfer.designs.panel import inputs, prompted
from tasktransfer.designs.panel.config import get_config
from tasktransfer.designs.panel.frames import CORPORA, ITEMS, PAIRS
from tasktransfer.designs.panel.names import (
    BROUGHT,
    PROMPTED,
    SELECTION_ADAPTER,
    SELECTION_COSINE,
    SELECTION_DIRECT,
)
from tasktransfer.designs.panel.ratings import DRAWN
from tasktransfer.designs.panel.sources.texts import normalise_text
from tasktransfer.designs.panel.substitutes import LEAKS_KEPT, list_substitutes
from tasktransfer.errors import DataError, RecordError
from tasktransfer.metrics.measures import compute_balanced_accuracy, compute_spearman
from tasktransfer.results.collect import Collected
from tasktransfer.results.common_frames import build_metadata
from tasktransfer.results.costs import compute_hours, describe_hardware
from tasktransfer.results.frame_files import read_earlier_rows
from tasktransfer.results.frames import Frames
from tasktransfer.results.records import get_selected_round
from tasktransfer.results.store import Metadata
from tasktransfer.tasks.card import Instance

Values = tuple[Any, ...]


def build_study_metadata(collected: Collected) -> Metadata:
    """Return the metadata of the study's frames, with a note on domains that have too few pairs."""
    config = get_config(collected.study)
    sizes, named = config.pairs, {**list_substitutes(config), **collected.substitutes}
    facts = {LEAKS_KEPT: named.pop(LEAKS_KEPT)} if LEAKS_KEPT in named else {}
    facts["pairs"] = f"{sizes.train:,} + {sizes.dev:,} pairs requested per domain"
    names = [name for name, _, _ in PAIRS]
    short = [
        f"{row['domain']} {row['split']} ({row['data']}) {row['pairs']:,}"
        for row in (dict(zip(names, pair, strict=True)) for pair in _list_pair_rows(collected))
        if row["pairs"] is not None and row["pairs"] < row["requested"]
    ]
    if short:
        facts["pairs"] += f"; fewer available: {', '.join(short)}"
    order = {
        "method": list(dict.fromkeys(run.method for run in collected.study.plan.runs)),
        "set": list(config.rated_sets),
        "domain": list(config.domains),
        BROUGHT: [
            *(rater.name for rater in config.brought),
            *(rater.model for rater in config.prompted),
        ],
    }
    planned = {
        (key, pairs * domains)
        for key, pairs in (("limit_train", sizes.train), ("limit_dev", sizes.dev))
        for domains in (1, len(config.domains))
    }
    return build_metadata(collected, order=order, facts=facts, substitutes=named, planned=planned)


def _find_rating_evaluation(run: Run) -> Evaluation | None:
    """Return the run's evaluation on all rated sets, or None if there is none."""
    found = [e for e in run.evaluations if e.data.recipe == inputs.TOGETHER]
    return found[0] if found else None


def make_ratings(frames: Frames) -> Iterator[Values]:
    """Yield the rows of the frame ``ratings``, one per method, seed and rated item."""
    collected = frames.collected
    for run in collected.runs:
        if run.model == PROMPTED:
            yield from prompted.make_rating_rows(collected, run)
            continue
        node = _find_rating_evaluation(run)
        if node is None:
            continue
        rows = collected.rows(node)
        ids, values = rows["instance_id"].to_pylist(), rows["predicted_value"].to_pylist()
        for item, value in zip(ids, values, strict=True):
            yield run.method, run.about["domain"], run.seed, item.rpartition("-")[0], item, value


def make_items(frames: Frames) -> list[Values]:
    """Return the rows of the frame ``items``, or its earlier rows if the data are missing."""
    study, collected = frames.study, frames.collected
    data = inputs.find_rated_items(study.plan)
    if data is None or not collected.has_record(data):
        return []
    try:
        items = read_instances(study.get_cache_folder(data), data.settings["task"], "test")
    except DataError:
        return read_earlier_rows(study, "items", ITEMS)
    return [_make_item_row(item) for item in items]


def _make_item_row(item: Instance) -> Values:
    response = item.query["response"]
    own = {*normalise_text(response).split()}
    shared = own & {*normalise_text(item.context).split()}
    return (
        item.id.rpartition("-")[0],
        item.id,
        item.dialogue_id,
        float(item.target[0]),
        [float(rating) for rating in item.query["ratings"].split()],
        len(item.turns) + 1,
        len(item.context.split()),
        len(response.split()),
        len(shared) / max(1, len(own)),
    )


def make_choices(frames: Frames) -> Iterator[Values]:
    """Yield the rows of the frame ``choices``, one per method, persona and context."""
    collected = frames.collected
    return chain.from_iterable(_make_choice_rows(collected, run) for run in collected.runs)


def _make_choice_rows(collected: Collected, run: Run) -> Iterator[Values]:
    if run.method in (SELECTION_DIRECT, SELECTION_COSINE):
        rows = collected.rows(run.evaluations[0])
        groups, values = rows["cluster"].to_pylist(), rows["predicted_value"].to_pylist()
    elif run.method == SELECTION_ADAPTER:
        table = collected.rows(run.result_nodes[0])
        groups = table["cluster"].to_pylist()
        values = [float(answer[0]) for answer in table["prediction"].to_pylist()]
    else:
        return
    offered: dict[str, list[float]] = {}
    for group, value in zip(groups, values, strict=True):
        offered.setdefault(group, []).append(value)
    for group, rated in offered.items():
        true, best = rated[0], max(rated)
        right = 1 / rated.count(best) if true == best else 0.0
        yield run.method, run.about["persona"], run.seed, group, right, len(rated)


def make_few_shot_rows(frames: Frames) -> list[Values]:
    """Return the rows of the frame ``few_shot``, one per sample of ratings."""
    collected = frames.collected
    runs = (run for run in collected.runs if "percent" in run.about)
    return [_make_few_shot_row(collected, run) for run in runs]


def _make_few_shot_row(collected: Collected, run: Run) -> Values:
    table = collected.rows(run.result_nodes[0])
    predicted, gold = (
        np.array([float(answer[0]) for answer in table[name].to_pylist()])
        for name in ("prediction", "gold")
    )
    held = np.array([not name.endswith(DRAWN) for name in table["instance_id"].to_pylist()])
    about = run.about
    return (
        *(about["of"], about["set"], about["by"], about["percent"], about["draw"]),
        *(
            100 * compute_spearman(predicted, gold),
            100 * compute_spearman(predicted[held], gold[held]),
        ),
        *(len(held), int(held.sum())),
    )


def _list_derived_data(collected: Collected, recipe: str) -> Iterator[Data]:
    for data in collected.study.plan.derived:
        if data.recipe == recipe and collected.has_record(data):
            yield data


def make_pairs(frames: Frames) -> Iterator[Values]:
    """Yield the rows of the frame ``pairs``, one per domain, split and origin of the response."""
    return _list_pair_rows(frames.collected)


def _list_pair_rows(collected: Collected) -> Iterator[Values]:
    for data in _list_derived_data(collected, inputs.PAIRS):
        yield from _make_pair_rows(collected, data)


def _make_pair_rows(collected: Collected, data: Data) -> Iterator[Values]:
    filtered = data.uses[0]
    assert isinstance(filtered, Data)
    kind = "filtered" if filtered.settings.get("drop", True) else "with leaks"
    if not inputs.is_for_paper_methods(get_config(collected.study), data):
        kind += ", of the twin"
    for name, counts in collected.record(data).get("report", {}).items():
        domain, split, *how = name.split()
        numbers = [counts.get(key) for key in ("made", "kept", "relabelled", "requested", "pairs")]
        whole = [None if value is None else int(value) for value in numbers]
        yield kind, domain, split, "".join(how), *whole


def make_leaks(frames: Frames) -> Iterator[Values]:
    """Yield the rows of the frame ``leaks``, one per corpus and split or rated set."""
    collected = frames.collected
    for data in _list_derived_data(collected, inputs.LEAKS):
        yield from _make_leak_rows(collected, data)


def _make_leak_rows(collected: Collected, data: Data) -> Iterator[Values]:
    dropped = bool(data.settings.get("drop", True))
    for name, counts in collected.record(data).get("report", {}).items():
        corpus, *rest = name.split()
        split, rated = (rest[0], "") if len(rest) == 1 else ("", rest[1])
        kept, items = counts.get("kept"), counts.get("items")
        yield (
            *(corpus, split, rated, int(counts["dialogues"])),
            None if kept is None else int(kept),
            None if items is None else int(items),
            dropped,
        )


def make_corpora(frames: Frames) -> list[Values]:
    """Return the rows of the frame ``corpora``, or its earlier rows if the data are missing."""
    study = frames.study
    config = get_config(study)
    try:
        cache = Path(study.get_instances_folder(config.dataset))
        return [
            row
            for domain in config.domains
            for split in ("train", "dev")
            for row in _count_utterances(domain, split, read_instances(cache, domain, split))
        ]
    except DataError:
        try:
            return read_earlier_rows(study, "corpora", CORPORA)
        except RecordError:  # a pack of an earlier version does not have the table
            return []


def _count_utterances(domain: str, split: str, instances: list[Instance]) -> Iterator[Values]:
    """Yield the sizes of a split, in which each utterance except the first is a response.

    Nothing is yielded without dialogues.
    """
    true = [one for one in instances if one.query.get("how") == "true"]
    openings = [one.context for one in true if one.id.endswith("#1")]
    if openings:
        texts = [*openings, *(one.query["response"] for one in true)]
        words = sum(len(text.split()) for text in texts)
        yield domain, split, len(openings), len(texts), words


def make_trainings(frames: Frames) -> list[Values]:
    """Return the rows of the frame ``trainings``, one per finished training."""
    collected = frames.collected
    stages = (stage for stage in frames.study.plan.stages if collected.has_record(stage))
    return [_make_training_row(collected, stage) for stage in stages]


def _make_training_row(collected: Collected, stage: Stage) -> Values:
    record = collected.record(stage)
    counts = record["provenance"]["training"].get("parameters")
    rounds, chosen = record["training"]["rounds"], get_selected_round(record, stage.select_on)
    tested = [result["measures"].get("accuracy") for result in record["results"].values()]
    has_accuracy = tested and None not in tested
    return (
        *(stage.kind, stage.label, stage.seed, len(rounds), chosen.number),
        *(chosen.dev_score, compute_hours(record)),
        *((counts["all"], counts["trained"]) if counts else (None, None)),
        describe_hardware(record),
        *(_compute_accuracies(collected, stage) if has_accuracy else (None,) * 3),
    )


def _compute_accuracies(collected: Collected, stage: Stage) -> tuple[float, float, float]:
    """Return a classifier's test accuracy, the majority class's accuracy, and balanced accuracy."""
    table = collected.rows(stage)
    predicted, gold = (
        np.array([float(answer[0]) for answer in table[name].to_pylist()])
        for name in ("prediction", "gold")
    )
    right, share = (predicted >= 0.5) == (gold >= 0.5), float((gold >= 0.5).mean())
    return (
        100 * float(right.mean()),
        100 * max(share, 1 - share),
        compute_balanced_accuracy(predicted, gold),
    )
