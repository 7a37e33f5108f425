"""The paper's Tables 3 to 9 beside the published numbers, and what the paper has not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from tasktransfer.data.cache import read_instances
from tasktransfer.designs.probes import published
from tasktransfer.designs.probes.collect import read_table
from tasktransfer.designs.probes.config import probes_config
from tasktransfer.designs.probes.facts import BY_TASK, EVERY
from tasktransfer.designs.probes.intervals import read_statistics
from tasktransfer.errors import DataError
from tasktransfer.files import replacing
from tasktransfer.results.study import Study
from tasktransfer.tables.metadata import Metadata
from tasktransfer.tables.printed import plain_layout, to_markdown

SNAPSHOTS = {"untrained": "Untrained", "last": "LastEpoch", "best": "BestBLEU"}
SELECTED_BY = {"bleu2": "BLEU", "rouge_l": "F1", "meteor": "METEOR", "vectors": "BERT"}
"""Measure of a round → as Tables 8 and 9 call what chooses by it."""

_PUBLISHED_PROBE = {probe.name: probe.published_name for probe in EVERY}


def write_printed(study: Study) -> None:
    """Write every printed table, CSV and Markdown."""
    scores, metadata = read_table(study, "scores")
    rounds, _ = read_table(study, "rounds")
    labels, _ = read_table(study, "labels")
    intervals, replies = (read_statistics(study, name) for name in ("intervals", "replies"))
    chosen = _chosen(scores, rounds)
    tables = {
        "table3": (_table3(replies), "BLEU-2 of greedy replies on the test split, mean over seeds"),
        "table4": (_table5(intervals, "PersonaChat", 4), "Probes on PersonaChat, micro-F1"),
        "table5": (_table5(intervals, "MultiWOZ", 5), "Probes on MultiWOZ, micro-F1"),
        "table6": (_table6(chosen), "MultiWOZ by difficulty, snapshots chosen by BLEU-2"),
        "table7": (_table7(study), "Parameters in millions, by formula"),
        "table8": (_table8(chosen, 8), "MultiWOZ by what chooses the snapshot, first half"),
        "table9": (_table8(chosen, 9), "MultiWOZ by what chooses the snapshot, second half"),
        "beyond": (_beyond(intervals, scores), "Beyond the paper: differences with intervals"),
        "claims": (
            read_statistics(study, "claims"),
            "Spearman's correlation of BLEU-2 on the dev split and probe F1",
        ),
        "agreement": (
            read_statistics(study, "agreement"),
            "Spearman's correlation of the rankings of models by two probes",
        ),
        "unsolved": (_unsolved(intervals), "Probes that no trained model answers above the prior"),
        "probe_labels": (labels, "Classes, priors and turns of each probe"),
    }
    folder = Path(study.figures)
    folder.mkdir(parents=True, exist_ok=True)
    for name, (frame, caption) in tables.items():
        _write(folder, name, frame, caption, metadata)
    with replacing(folder / "one_dialogue.md") as part:
        part.write_text(_one_dialogue(study, metadata), encoding="utf-8")


def _write(folder: Path, name: str, frame: pd.DataFrame, caption: str, said: Metadata) -> None:
    text = f"{said.mark}{caption}. Published numbers are of other and more data: they stand beside."
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


def _table6(chosen: pd.DataFrame) -> pd.DataFrame:
    """By the groups that the paper used and by the thresholds that it prints."""
    rows = []
    theirs = published.table(6)
    by_bleu = chosen[chosen["selected_by"] == "BLEU"]
    for way, groups in (
        ("as used", published.difficulty()),
        ("as printed", published.difficulty_by_threshold()),
    ):
        grouped = by_bleu.assign(group=by_bleu["probe"].map(_PUBLISHED_PROBE).map(groups))
        for (model, group), some in grouped.groupby(["model", "group"], sort=False):
            number = _one(theirs, "f1", model=_named(model).table6, group=str(group))
            printed = number if way == "as used" else None
            rows.append(
                (way, model, group, some["f1"].mean(), some["f1"].std(), len(some), printed)
            )
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


def _chosen(scores: pd.DataFrame, rounds: pd.DataFrame) -> pd.DataFrame:
    """F1 on MultiWOZ of the trained snapshot that is best by each measure, mean over seeds; a
    snapshot that was not probed is left out, and ``seeds`` says how many were."""
    keys = ["corpus", "model", "seed"]
    probed = scores.dropna(subset=["epoch"]).drop_duplicates([*keys, "epoch", "probe"])
    parts = []
    for measure, name in SELECTED_BY.items():
        trained = rounds[rounds["epoch"] > 0].dropna(subset=[measure])
        if trained.empty:
            continue
        best = trained.loc[trained.groupby(keys)[measure].idxmax(), [*keys, "epoch"]]
        parts.append(probed.merge(best, on=[*keys, "epoch"]).assign(selected_by=name))
    rows = pd.concat(parts).query("corpus == 'MultiWOZ'")
    by = rows.groupby(["model", "selected_by", "probe"], sort=False)["f1"]
    return by.agg(f1="mean", sd="std", seeds="count").reset_index()


def _beyond(intervals: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Differences to the prior, to shuffled labels and to the untrained model, with intervals; and
    the same probe on counts of words."""
    own = intervals[intervals["compared_with"] != "nothing"].drop(columns=["sd"])
    keys = ["corpus", "model", "snapshot", "probe"]
    told = ["f1", "prior", "minority", "mlp"]
    more = scores.groupby(keys, sort=False, as_index=False)[told].mean()
    words = more[more["model"] == "words"].set_index(["corpus", "probe"])["f1"]
    more["words"] = [words.get((row["corpus"], row["probe"])) for row in more.to_dict("records")]
    return own.merge(more, on=keys)


def _unsolved(intervals: pd.DataFrame) -> pd.DataFrame:
    """The probes of which no trained snapshot's difference to the prior is surely above 0, with the
    one that comes nearest."""
    trained = intervals[~intervals["snapshot"].isin(["untrained", "words"])]
    above = trained[trained["compared_with"] == "prior"]
    best = above.sort_values("low", ascending=False, na_position="last").drop_duplicates(
        ["corpus", "probe"]
    )
    unsolved = best[~(best["low"] > 0)].sort_index()
    kept = ["corpus", "probe", "model", "snapshot", "value", "low", "high"]
    return unsolved[kept].rename(columns={"value": "above_prior"})


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
