"""The paper's Tables 3 to 9 with the published numbers, and further tables."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import pandas as pd

from tasktransfer.core.runs import Run
from tasktransfer.data.cache import read_instances
from tasktransfer.designs.probes import published
from tasktransfer.designs.probes.config import get_config
from tasktransfer.designs.probes.facts import BY_TASK, CONTROL, EVERY
from tasktransfer.designs.probes.intervals import ALL
from tasktransfer.designs.probes.plan import UNTRAINED, WORDS, get_layer, map_word_count_names
from tasktransfer.errors import DataError
from tasktransfer.present.numbers import is_significantly_negative, is_significantly_positive
from tasktransfer.present.published import PublishedValues, add_published_columns
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import Metadata
from tasktransfer.results.study import Study

SNAPSHOTS = {"untrained": "Untrained", "last": "LastEpoch", "best": "BestBLEU"}
OTHER_MEASURES = {"rouge_l": "F1", "meteor": "METEOR", "vectors": "BERT"}
"""Measure of a round → name of this selection in Tables 8 and 9, except the study's own BLEU."""

MOST_P = 0.05
"""Significance level."""

_PUBLISHED_PROBE = {probe.name: probe.published_name for probe in EVERY}


# --- the paper's tables -------------------------------------------------------------------------


def compute_table3(frames: Frames) -> pd.DataFrame:
    """Return BLEU-2 of greedy replies, one row per model and corpus."""
    theirs = PublishedValues(
        published.read_table(3),
        "bleu2",
        {
            "model": lambda row: _get_names(row["model"]).table3,
            "dataset": lambda row: published.CORPORA[str(row["corpus"])],
        },
    )
    return add_published_columns(frames["replies"], theirs, frames.metadata, value="bleu2")


def compute_table4(frames: Frames) -> pd.DataFrame:
    """Return the F1 of the probes on PersonaChat, per model and snapshot."""
    return _compute_snapshot_table(frames, "PersonaChat", 4)


def compute_table5(frames: Frames) -> pd.DataFrame:
    """Return the F1 of the probes on MultiWOZ, per model and snapshot."""
    return _compute_snapshot_table(frames, "MultiWOZ", 5)


def _compute_snapshot_table(frames: Frames, corpus: str, number: int) -> pd.DataFrame:
    """Return scores with intervals, one row per model, snapshot and probe."""
    intervals = frames["intervals"]
    own = intervals.query("corpus == @corpus and compared_with == 'nothing'")
    kept = ["corpus", "model", "snapshot", "probe", "value", "sd", "low", "high", "seeds"]
    theirs = PublishedValues(
        published.read_table(number),
        "f1",
        {
            "model": lambda row: _get_names(row["model"]).probes,
            "snapshot": lambda row: SNAPSHOTS.get(str(row["snapshot"])),
            "task": lambda row: _PUBLISHED_PROBE[str(row["probe"])],
        },
    )
    return add_published_columns(
        own[kept].rename(columns={"value": "f1"}), theirs, frames.metadata, value="f1"
    )


def compute_table6(frames: Frames) -> pd.DataFrame:
    """Return mean F1 by difficulty, for the groups that the paper used and the groups it prints.

    A published mean is shown only next to a mean over the same probes.
    """
    return average_by_difficulty(_select_snapshots(frames), frames.metadata)


def average_by_difficulty(chosen: pd.DataFrame, metadata: Metadata) -> pd.DataFrame:
    """Average the scores of selected snapshots by the probes' difficulty (Table 6)."""
    rows = []
    by_bleu = chosen[chosen["selected_by"] == "BLEU"]
    names = by_bleu["probe"].map(_PUBLISHED_PROBE)
    for way, groups in (
        ("as used", published.group_probes_as_used()),
        ("as printed", published.group_probes_as_printed()),
    ):
        grouped = by_bleu.assign(group=names.map(groups), name=names)
        for (model, group), some in grouped.groupby(["model", "group"], sort=False):
            of_paper = sum(of == group for of in groups.values())
            f1 = some["f1"]
            rows.append((way, model, group, f1.mean(), f1.std(), len(some), of_paper))
    columns = ["groups", "model", "group", "f1", "sd_over_probes", "probes", "probes_of_paper"]
    frame = pd.DataFrame(rows, columns=columns)
    theirs = PublishedValues(
        published.read_table(6).assign(groups="as used"),
        "f1",
        {
            "groups": lambda row: row["groups"],
            "model": lambda row: _get_names(row["model"]).table6,
            "group": lambda row: row["group"],
        },
        differs=_describe_probe_difference,
    )
    return add_published_columns(frame, theirs, metadata, value="f1")


def _describe_probe_difference(row: Mapping[str, Any]) -> str:
    if row["probes"] == row["probes_of_paper"]:
        return ""
    return f"{row['group']}: {row['probes']} of the paper's {row['probes_of_paper']} probes"


def compute_table7(frames: Frames) -> pd.DataFrame:
    """Return the number of parameters in millions, computed by formula."""
    rows = []
    for model in get_config(frames.study).models:
        if model.architecture is not None:
            built = model.architecture.built
            sizes = [built.count_parameters(words) / 1e6 for words in (13_000, 16_000, 17_000)]
            rows.append((model.name, *sizes))
    return pd.DataFrame(rows, columns=["model", "13,000 words", "16,000 words", "17,000 words"])


def compute_table8(frames: Frames) -> pd.DataFrame:
    """Return F1 on MultiWOZ by selecting measure, for the first half of the probes (Table 8)."""
    return _compute_selection_table(frames, 8)


def compute_table9(frames: Frames) -> pd.DataFrame:
    """Return F1 on MultiWOZ by selecting measure, for the second half of the probes (Table 9)."""
    return _compute_selection_table(frames, 9)


def _compute_selection_table(frames: Frames, number: int) -> pd.DataFrame:
    theirs = published.read_table(number)
    chosen = _select_snapshots(frames)
    own = chosen[chosen["probe"].map(_PUBLISHED_PROBE).isin(_list_probes(number))]
    keys = {
        "model": lambda row: _get_names(row["model"]).probes,
        "selected_by": lambda row: str(row["selected_by"]),
        "task": lambda row: _PUBLISHED_PROBE[str(row["probe"])],
    }
    return add_published_columns(
        own, PublishedValues(theirs, "f1", keys), frames.metadata, value="f1"
    )


def _list_probes(number: int) -> set[str]:
    return {*published.read_table(number)["task"]}


def has_probes_of_table(study: Study, number: int) -> bool:
    """Return whether a study has a probe of a table (8 or 9)."""
    own = {probe.published_name for probe in get_config(study).select_probes("MultiWOZ")}
    return bool(own & _list_probes(number))


def _get_names(model: object) -> published.Names:
    """Return the paper's names of a model, or empty names if the paper does not have it."""
    return published.MODELS.get(str(model), published.Names("", "", ""))


# --- beyond the paper ---------------------------------------------------------------------------


def _select_snapshots(frames: Frames) -> pd.DataFrame:
    """Return the F1 of the snapshots that each measure selects."""
    measure = get_config(frames.study).probes.measure
    return select_snapshots_by_measures(frames["probed"], frames["rounds"], measure)


def select_snapshots_by_measures(
    scores: pd.DataFrame, rounds: pd.DataFrame, bleu: str
) -> pd.DataFrame:
    """Return the F1 on MultiWOZ of each measure's selected snapshot, averaged over seeds.

    All measures select among the same snapshots of a training: the probed ones that have every
    measure that any snapshot has.

    Args:
        scores: the table ``probed``.
        rounds: the table ``rounds``.
        bleu: column of the measure that the study selects by.
    """
    keys = ["corpus", "model", "seed"]
    probed = scores.dropna(subset=["epoch"]).drop_duplicates([*keys, "epoch", "probe"])
    probed = probed.query("corpus == 'MultiWOZ' and epoch > 0")
    named = {bleu: "BLEU", **OTHER_MEASURES}
    there = rounds.merge(probed[[*keys, "epoch"]].drop_duplicates(), on=[*keys, "epoch"])
    measures = [measure for measure in named if there[measure].notna().any()]
    same = there.dropna(subset=measures)
    parts = []
    for measure in measures:
        best = same.loc[same.groupby(keys)[measure].idxmax(), [*keys, "epoch"]]
        parts.append(probed.merge(best, on=[*keys, "epoch"]).assign(selected_by=named[measure]))
    rows = pd.concat(parts) if parts else probed.assign(selected_by="")
    by = rows.groupby(["model", "selected_by", "probe"], sort=False)["f1"]
    return by.agg(f1="mean", sd="std", seeds="count").reset_index()


def list_claims(frames: Frames) -> pd.DataFrame:
    """Return correlations between BLEU and probe F1."""
    return frames["claims"]


def list_agreement(frames: Frames) -> pd.DataFrame:
    """Return correlations between the rankings of models by two probes."""
    return frames["agreement"]


def list_probe_labels(frames: Frames) -> pd.DataFrame:
    """Return the most frequent label of each probe, and its numbers of turns and classes."""
    return frames["labels"]


def list_differences(frames: Frames) -> pd.DataFrame:
    """Return differences in F1 from the prior, shuffled labels, untrained models and word counts.

    Each row also has the same probe's score on counts of the words that the model reads.
    """
    above_words = frames["above_words"].query("probe != 'all'").assign(compared_with=WORDS)
    intervals = frames["intervals"]
    every = pd.concat([intervals, above_words[[c for c in above_words if c in intervals]]])
    readings = map_word_count_names(get_config(frames.study))
    return compute_differences(every, frames["probed"], readings)


def list_means_above_words(frames: Frames) -> pd.DataFrame:
    """Return each encoder's mean F1 minus that of word counts, and counts of its probes.

    The mean over models is shown only for several models. Layers have their own table.
    """
    return summarise_above_words(frames["above_words"])


def summarise_above_words(above_words: pd.DataFrame) -> pd.DataFrame:
    """Compute the printed table ``above_words`` from the frame of this name."""
    keys = ["corpus", "model", "snapshot"]
    layers = above_words["snapshot"].map(get_layer).notna()
    above_words = above_words[~layers]
    means = above_words[above_words["probe"] == "all"]
    real = above_words[~above_words["probe"].isin(["all", CONTROL])]
    tested = real.assign(
        higher=is_significantly_positive(real),
        lower=is_significantly_negative(real),
        tested=real["q"].notna(),
    )
    counts = tested.groupby(keys, sort=False)[["higher", "lower", "tested"]].sum()
    rows = means.merge(counts.reset_index(), on=keys, how="left")
    rows[["higher", "lower"]] = rows[["higher", "lower"]].where(rows["tested"] > 0)
    several = rows.groupby(["corpus", "snapshot"])["model"].transform("size") > 2
    return rows[(rows["model"] != "all") | several].drop(columns="tested")


def compute_differences(
    intervals: pd.DataFrame, scores: pd.DataFrame, readings: Mapping[str, str]
) -> pd.DataFrame:
    """Compute the printed table ``beyond`` of differences in F1.

    Args:
        intervals: the table ``intervals``.
        scores: the table ``probed``.
        readings: model → name of the word counts over the words that it reads.
    """
    own = intervals[intervals["compared_with"] != "nothing"].drop(columns=["sd"])
    keys, shown = ["corpus", "model", "snapshot", "probe"], ["f1", "prior", "minority", "mlp"]
    more = scores.groupby(keys, sort=False, as_index=False)[shown].mean()
    words = more[more["snapshot"] == WORDS].set_index(["corpus", "probe", "model"])["f1"]
    more["words"] = [
        words.get((row["corpus"], row["probe"], readings.get(row["model"], row["model"])))
        for row in more.to_dict("records")
    ]
    return own.merge(more, on=keys)


def list_unsolved_probes(frames: Frames) -> pd.DataFrame:
    """Return the probes on which no trained model is significantly better than the prior."""
    return find_probes_not_above_prior(frames["intervals"])


def list_layers(frames: Frames) -> pd.DataFrame:
    """Return each layer's mean F1 over probes, and counts of its probes."""
    return summarise_layers(frames["layers"])


def summarise_layers(layers: pd.DataFrame) -> pd.DataFrame:
    """Compute the printed table ``layers`` from the frame of this name."""
    real = layers[~layers["probe"].isin([ALL, CONTROL])]
    tested = real.assign(
        higher=is_significantly_positive(real, "above_words"),
        lower=is_significantly_negative(real, "above_words"),
    )
    keys = ["corpus", "model", "layer"]
    counts = tested[tested["q"].notna()].groupby(keys, sort=False)[["higher", "lower"]].sum()
    return layers[layers["probe"] == ALL].merge(counts.reset_index(), on=keys, how="left")


def format_single_seed_note(frames: Frames, frame: pd.DataFrame) -> list[str]:
    """Return a note on the p values of a study with one training run per model."""
    seeds = frames["intervals"]["seeds"].max()
    alone = bool(frames.study.plan.stages) and seeds == 1
    return (
        ["With one run per model, p covers only the variation between dialogues."] if alone else []
    )


def find_probes_not_above_prior(intervals: pd.DataFrame) -> pd.DataFrame:
    """Return the probes on which no trained snapshot is significantly better than the prior.

    Each row has the snapshot with the smallest p. The smallest p of many cells is also small by
    chance, so it is multiplied by the number of models and snapshots of the probe (Bonferroni).
    """
    trained = intervals[~intervals["snapshot"].isin([UNTRAINED, WORDS])]
    cells = trained[trained["compared_with"] == "prior"].copy()
    cells["cells"] = cells.groupby(["corpus", "probe"])["p"].transform("size")
    above = (cells["value"] > 0) & cells["p"].notna()
    cells["p"] = (cells["p"] * cells["cells"]).clip(upper=1).where(above, 1.0)
    best = cells.sort_values(["p", "value"], ascending=[True, False]).drop_duplicates(
        ["corpus", "probe"]
    )
    kept = ["corpus", "probe", "model", "snapshot", "value", "low", "high", "cells", "p"]
    left = best[best["p"] > MOST_P].sort_index()
    return left[kept].rename(columns={"value": "above_prior", "p": "p_times_cells"})


# --- provenance ---------------------------------------------------------------------------------


def is_source_of_group_mean(row: Mapping[str, Any], run: Run) -> bool:
    """Return whether a run contributes to a mean over a group of probes."""
    as_used = row["groups"] == "as used"
    groups = published.group_probes_as_used() if as_used else published.group_probes_as_printed()
    probe = _PUBLISHED_PROBE.get(str(run.about["probe"]))
    return (run.about["corpus"], run.model) == ("MultiWOZ", row["model"]) and (
        groups.get(str(probe)) == row["group"]
    )


def is_source_of_words_mean(row: Mapping[str, Any], run: Run) -> bool:
    """Return whether a run contributes to a mean over an encoder's probes or over word counts."""
    if run.about["corpus"] != row["corpus"]:
        return False
    same = run.method == row["snapshot"] and row["model"] in (run.model, "all")
    return same or run.method == WORDS


def is_source_of_layer_mean(row: Mapping[str, Any], run: Run) -> bool:
    """Return whether a run contributes to a layer's mean: a probe of this layer, or word counts."""
    own = run.model == row["model"] and get_layer(run.method) == row["layer"]
    return run.about["corpus"] == row["corpus"] and (own or run.method == WORDS)


def is_source_of_agreement(row: Mapping[str, Any], run: Run) -> bool:
    """Return whether a run contributes to the agreement of two probes."""
    probes = (row["first"], row["second"])
    same = (run.method, run.about["corpus"]) == (row["snapshot"], row["corpus"])
    return same and run.about["probe"] in probes


def list_first_dialogue(frames: Frames) -> pd.DataFrame:
    """Return the labelled turns of the first test dialogue of each corpus.

    A corpus whose labels are not on this machine has no rows.
    """
    rows: list[dict[Hashable, Any]] = []
    for data in frames.study.plan.derived:
        try:
            turns = list(_read_labelled_turns(frames.study, data))
        except DataError:  # tables and figures are also made without the data
            continue
        order = list(dict.fromkeys(turn["turn"] for turn in turns))
        rows += sorted(turns, key=lambda turn: order.index(turn["turn"]))
    return pd.DataFrame(rows, columns=["corpus", "turn", "context", "probe", "labels"])


def _read_labelled_turns(study: Study, data: Any) -> Iterator[dict[Hashable, Any]]:
    cache, first = study.get_cache_folder(data), None
    for task in study.list_tasks(data):
        for instance in read_instances(cache, task, "test"):
            first = first or instance.dialogue_id
            if instance.dialogue_id == first:
                yield {
                    "corpus": data.name,
                    "turn": instance.id,
                    "context": instance.context,
                    "probe": BY_TASK[task].name,
                    "labels": json.dumps(list(instance.target), ensure_ascii=False),
                }
