"""The paper's Tables 3 to 9 beside the published numbers, and what the paper has not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from tasktransfer.data.cache import read_instances
from tasktransfer.designs.probes import published
from tasktransfer.designs.probes.collect import read_table
from tasktransfer.designs.probes.config import probes_config
from tasktransfer.designs.probes.facts import BY_TASK, EVERY
from tasktransfer.designs.probes.intervals import read_statistics
from tasktransfer.designs.probes.plan import UNTRAINED, WORDS, readings_of
from tasktransfer.errors import DataError
from tasktransfer.files import replacing
from tasktransfer.results.study import Study
from tasktransfer.tables.metadata import Metadata
from tasktransfer.tables.printed import plain_layout, to_markdown
from tasktransfer.tables.published import beside
from tasktransfer.tables.published import caption as published_caption

SNAPSHOTS = {"untrained": "Untrained", "last": "LastEpoch", "best": "BestBLEU"}
OTHER_MEASURES = {"rouge_l": "F1", "meteor": "METEOR", "vectors": "BERT"}
"""Measure of a round → as Tables 8 and 9 call what chooses by it; BLEU is the study's own."""

MOST_P = 0.05
"""Of what is sure."""

OTHER_SETTING = "Published numbers are of other data and labels: they stand beside."
CITED = ("table7",)
"""Tables that have no number of the study."""
_PUBLISHED_PROBE = {probe.name: probe.published_name for probe in EVERY}


def write_printed(study: Study) -> None:
    """Write every printed table, CSV and Markdown."""
    scores, metadata = read_table(study, "probed")
    rounds, _ = read_table(study, "rounds")
    labels, _ = read_table(study, "labels")
    intervals, replies = (read_statistics(study, name) for name in ("intervals", "replies"))
    config = probes_config(study)
    chosen = chosen_by_measures(scores, rounds, config.probes.measure)
    among = "every measure choosing among the same trained snapshots, those that are probed"
    tables = {
        "table3": (_table3(replies), "BLEU-2 of greedy replies on the test split, mean over seeds"),
        "table4": (_table5(intervals, "PersonaChat", 4), "Probes on PersonaChat, micro-F1"),
        "table5": (_table5(intervals, "MultiWOZ", 5), "Probes on MultiWOZ, micro-F1"),
        "table6": (table6(chosen), "MultiWOZ by difficulty, snapshots chosen by BLEU-2"),
        "table7": (_table7(study), "Parameters in millions, by formula"),
        "table8": (_table8(chosen, 8), f"MultiWOZ, first half, {among}"),
        "table9": (_table8(chosen, 9), f"MultiWOZ, second half, {among}"),
        "beyond": (
            _beyond(intervals, scores, readings_of(config)),
            "Beyond the paper: differences with intervals",
        ),
        "claims": (
            read_statistics(study, "claims"),
            "Spearman's correlation of BLEU-2 on the dev split and probe F1; the interval takes "
            "models whole, with their seeds",
        ),
        "agreement": (
            read_statistics(study, "agreement"),
            "Spearman's correlation of the rankings of models by two probes",
        ),
        "unsolved": (
            unsolved(intervals),
            "Probes that no trained model answers surely above the prior: p of the surest of all "
            "cells, times their number, is above 0.05",
        ),
        "probe_labels": (labels, "Classes, priors and turns of each probe"),
    }
    folder = Path(study.figures)
    folder.mkdir(parents=True, exist_ok=True)
    for name, (frame, caption) in tables.items():
        shown = frame if name in CITED else beside(frame, metadata)
        _write(folder, name, shown, caption, metadata)
    with replacing(folder / "one_dialogue.md") as part:
        part.write_text(_one_dialogue(study, metadata), encoding="utf-8")


def _write(folder: Path, name: str, frame: pd.DataFrame, caption: str, said: Metadata) -> None:
    text = published_caption(frame, f"{said.mark}{caption}. {OTHER_SETTING}", OTHER_SETTING)
    text += "".join(f" {name}: {told}." for name, told in said.facts.items())
    with replacing(folder / f"{name}.csv") as part:
        frame.to_csv(part, index=False, lineterminator="\n")
    with replacing(folder / f"{name}.md") as part:
        part.write_text(to_markdown(plain_layout(frame), text, name), encoding="utf-8")


def _table3(replies: pd.DataFrame) -> pd.DataFrame:
    ours = replies.copy()
    ours["published"] = [
        _one(
            published.table(3),
            "bleu2",
            model=_named(row["model"]).table3,
            dataset=published.CORPORA[str(row["corpus"])],
        )
        for row in ours.to_dict("records")
    ]
    return ours


def _table5(intervals: pd.DataFrame, corpus: str, number: int) -> pd.DataFrame:
    """Scores with intervals, a row a model, snapshot and probe."""
    own = intervals.query("corpus == @corpus and compared_with == 'nothing'").copy()
    theirs = published.table(number)
    own["published"] = [
        _one(
            theirs,
            "f1",
            model=_named(row["model"]).probes,
            snapshot=SNAPSHOTS.get(str(row["snapshot"]), ""),
            task=_PUBLISHED_PROBE[str(row["probe"])],
        )
        for row in own.to_dict("records")
    ]
    kept = ["model", "snapshot", "probe", "value", "sd", "low", "high", "seeds", "published"]
    return own[kept].rename(columns={"value": "f1"})


def table6(chosen: pd.DataFrame) -> pd.DataFrame:
    """By the groups that the paper used and by the thresholds that it prints. The published mean
    stands beside a mean over the same probes only."""
    rows = []
    theirs = published.table(6)
    by_bleu = chosen[chosen["selected_by"] == "BLEU"]
    names = by_bleu["probe"].map(_PUBLISHED_PROBE)
    for way, groups in (
        ("as used", published.difficulty()),
        ("as printed", published.difficulty_by_threshold()),
    ):
        grouped = by_bleu.assign(group=names.map(groups), name=names)
        for (model, group), some in grouped.groupby(["model", "group"], sort=False):
            same = {*some["name"]} == {name for name, of in groups.items() if of == group}
            number = _one(theirs, "f1", model=_named(model).table6, group=str(group))
            beside = number if way == "as used" and same else None
            rows.append((way, model, group, some["f1"].mean(), some["f1"].std(), len(some), beside))
    columns = ["groups", "model", "group", "f1", "sd_over_probes", "probes", "published"]
    return pd.DataFrame(rows, columns=columns)


def _table7(study: Study) -> pd.DataFrame:
    rows = []
    for model in probes_config(study).models:
        if model.architecture is not None:
            built = model.architecture.built
            sizes = [built.parameters(words) / 1e6 for words in (13_000, 16_000, 17_000)]
            rows.append((model.name, *sizes))
    return pd.DataFrame(rows, columns=["model", "13,000 words", "16,000 words", "17,000 words"])


def _table8(chosen: pd.DataFrame, number: int) -> pd.DataFrame:
    theirs = published.table(number)
    tasks = set(theirs["task"])
    own = chosen[chosen["probe"].map(_PUBLISHED_PROBE).isin(tasks)].copy()
    own["published"] = [
        _one(
            theirs,
            "f1",
            model=_named(row["model"]).probes,
            selected_by=str(row["selected_by"]),
            task=_PUBLISHED_PROBE[str(row["probe"])],
        )
        for row in own.to_dict("records")
    ]
    return own


def chosen_by_measures(scores: pd.DataFrame, rounds: pd.DataFrame, bleu: str) -> pd.DataFrame:
    """F1 on MultiWOZ of the trained snapshot that is best by each measure, mean over seeds.

    All measures choose among the same snapshots of a training: those that are probed and have every
    measure that any of them has. ``bleu``: the measure that the study selects by.
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


def _beyond(
    intervals: pd.DataFrame, scores: pd.DataFrame, readings: Mapping[str, str]
) -> pd.DataFrame:
    """Differences to the prior, to shuffled labels and to the untrained model, with intervals; and
    the same probe on counts of the words that the model reads (``readings``: what they are
    called)."""
    own = intervals[intervals["compared_with"] != "nothing"].drop(columns=["sd"])
    keys = ["corpus", "model", "snapshot", "probe"]
    told = ["f1", "prior", "minority", "mlp"]
    more = scores.groupby(keys, sort=False, as_index=False)[told].mean()
    words = more[more["snapshot"] == WORDS].set_index(["corpus", "probe", "model"])["f1"]
    more["words"] = [
        words.get((row["corpus"], row["probe"], readings.get(row["model"], row["model"])))
        for row in more.to_dict("records")
    ]
    return own.merge(more, on=keys)


def unsolved(intervals: pd.DataFrame) -> pd.DataFrame:
    """The probes of which no trained snapshot's difference to the prior is surely above 0, with the
    one that comes nearest.

    The surest of many cells is sure by chance too: its p is multiplied by their number (Bonferroni,
    over the models and snapshots of a probe).
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


def _one(frame: pd.DataFrame, column: str, **where: str) -> float | None:
    """The only number of rows with these values; None where there is none."""
    rows = frame
    for name, value in where.items():
        rows = rows[rows[name] == value]
    return float(rows[column].iloc[0]) if len(rows) == 1 else None


def _named(model: object) -> published.Names:
    """What the paper calls a model of the study; nothing, for one that it has not."""
    return published.MODELS.get(str(model), published.Names("", "", ""))


def _one_dialogue(study: Study, metadata: Metadata) -> str:
    """A page that shows the first test dialogue of each corpus with all its labels."""
    pages = [f"# One dialogue with its labels\n\n{metadata.mark}".rstrip()]
    for data in study.plan.derived:
        try:
            rows = dict(_labelled_turns(study, data))
        except DataError:  # tables and figures are drawn without the data too
            pages.append(f"## {data.name}\n\nThe labels are not on this disk.")
            continue
        pages += [f"## {data.name}", *rows.values()]
    return "\n\n".join(pages) + "\n"


def _labelled_turns(study: Study, data: Any) -> Iterator[tuple[str, str]]:
    shown: dict[str, list[str]] = {}
    contexts: dict[str, str] = {}
    cache, first = study.cache(data), None
    for task in study.tasks(data):
        for one in read_instances(cache, task, "test"):
            first = first or one.dialogue_id
            if one.dialogue_id == first:
                contexts[one.id] = one.context
                said = json.dumps(list(one.target), ensure_ascii=False)
                shown.setdefault(one.id, []).append(f"- {BY_TASK[task].name}: {said}")
    for name, lines in shown.items():
        yield name, "\n".join([f"**{name}** {contexts[name]}", "", *lines])
