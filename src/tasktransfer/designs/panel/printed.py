"""Tables I to VIII with ours beside the published numbers, and what the paper has not."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.designs.panel import columns
from tasktransfer.designs.panel.published import AVERAGES, published, same_members
from tasktransfer.designs.panel.sources.cards import RATED
from tasktransfer.designs.panel.statistics import CONTROLS, groups
from tasktransfer.results.study import Study
from tasktransfer.tables.metadata import Metadata
from tasktransfer.tables.numbers import absent, interval, number, p_value
from tasktransfer.tables.printed import Layout, plain_layout, write_table
from tasktransfer.tables.published import beside
from tasktransfer.tables.published import caption as published_caption
from tasktransfer.tables.store import read_frame

OTHER_SETTING = (
    "Published numbers are of other and more data and another encoder: they stand beside, and are "
    "not tested, since their ratings of single items are not public."
)
BY_DRAWING = "contexts and seeds drawn"
COUNTS = {"seeds", "made", "kept", "relabelled", "asked", "pairs", "candidates", "contexts"}
PUBLISHED = {
    "panel": "PoE",
    "collection": "CoE+",
    "single": "Single-T+",
    "panel-mean": "PoE-avg",
}
"""Method → its name in Tables III and IV."""
MERGED = {"panel-max": "PoE-max", "panel-mean": "PoE-avg", "panel-min": "PoE-min"}
CORPUS_NAMES = {"Empathetic": "EmpatheticDialogue", "Reddit": "REDDIT"}

CITED = ("table6",)
"""Tables that have no number of the study."""


def read_tables(study: Study) -> tuple[dict[str, pd.DataFrame], Metadata]:
    """The collected tables and the statistics, but for single ratings."""
    read: dict[str, pd.DataFrame] = {}
    for name, described in {**columns.TABLES, **columns.STATISTICS}.items():
        if name not in ("ratings", "items", "choices", "few_shot"):
            read[name], metadata = read_frame(Path(study.tables, f"{name}.parquet"), described)
    return read, metadata


def caption_of(metadata: Metadata) -> str:
    """What every caption says: generated dialogues, leaks, stand-ins."""
    facts = dict(metadata.facts)
    pairs = facts.pop("pairs", "")
    told = " ".join(f"{name}: {text}." for name, text in facts.items())
    return f"{metadata.mark}{pairs}. {told}".strip()


def write_printed(study: Study) -> None:
    """Write every printed table."""
    read, metadata = read_tables(study)
    caption, folder = caption_of(metadata), Path(study.figures)
    folder.mkdir(parents=True, exist_ok=True)
    tables = {
        "table1": (_table1(read["leaks"], read["pairs"]), "Dialogues, and pairs for training."),
        "table2": (_table2(read["ceilings"]), "Rated sets; word counts without speakers' names."),
        "table3": (
            _correlations(read, 3),
            f"In-domain, Spearman x 100. {OTHER_SETTING}",
        ),
        "table4": (
            _correlations(read, 4),
            f"Out-of-domain, Spearman x 100. {OTHER_SETTING}",
        ),
        "table5": (
            table5(read["few"], read["correlations"]),
            f"Few-shot transfer. {OTHER_SETTING}",
        ),
        "table6": (published("table6"), "Few-shot transfer of MDD-Eval and PoE-avg: cited."),
        "table7": (table7(read["hits"]), f"Hits@1, percent. {OTHER_SETTING}"),
        "table8": (_table8(read), f"Merged experts, Spearman x 100. {OTHER_SETTING}"),
        "resources": (_resources(read["trainings"]), "Times of these records; published, cited."),
        "tests": (
            read["tests"],
            "Differences of correlations, of ratings averaged over seeds and per seed, by drawing "
            "contexts (difference to q); the mean over seeds by contexts and seeds; Williams' "
            "test, which takes the responses to one context for independent and finds too much.",
        ),
        "pairs": (read["pairs"], "Pairs made, kept and relabelled."),
        "leaks": (read["leaks"], "Dialogues and rated items that share a longer utterance."),
        "ceilings": (
            read["ceilings"],
            "Agreement of halves of the annotators, the reliability of the mean of all of them, "
            "its square root, which a correlation exceeds by luck alone, and what nobody trained.",
        ),
    }
    for name, (whole, said) in tables.items():
        frame = whole if name in CITED else beside(whole, metadata)
        text = f"{published_caption(frame, said, OTHER_SETTING)} {caption}"
        write_table(folder, name, frame, metadata, text, layout=_layout(frame))


# --- tables -------------------------------------------------------------------------------------


def _table1(leaks: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Dialogues before and after the filter, pairs, and the paper's."""
    printed = published("table1")
    own = leaks[leaks["split"] != ""]
    rows = []
    for one in own.drop_duplicates(["corpus", "split"]).to_dict("records"):
        mine = pairs[
            (pairs["domain"] == one["corpus"])
            & (pairs["split"] == one["split"])
            & (pairs["how"] == "")
            & ~pairs["data"].str.endswith("twin")
        ]
        name = CORPUS_NAMES.get(str(one["corpus"]), str(one["corpus"]))
        column = {"train": "training", "dev": "validation"}.get(str(one["split"]))
        theirs = printed[(printed["corpus"] == name) & (printed["statistic"] == "dialogues")]
        if not one["dialogues"]:
            continue
        rows.append(
            {
                "corpus": one["corpus"],
                "split": one["split"],
                "dialogues": one["dialogues"],
                "without leaks": one["kept"],
                "pairs": mine["pairs"].max() if len(mine) else None,
                "published dialogues": float(theirs[column].iloc[0])
                if column and len(theirs)
                else None,
            }
        )
    return pd.DataFrame(rows)


def _table2(ceilings: pd.DataFrame) -> pd.DataFrame:
    printed = published("table2").set_index("dataset")
    frame = ceilings.copy()
    for name in ("instances", "utterances", "context_words", "response_words"):
        frame[f"published {name}"] = [
            float(printed[name].get(_name(one), np.nan)) for one in frame["set"]
        ]
    others = ["split_half", "reliability", "ceiling", "overlap", "length"]
    return frame.drop(columns=[*others, "cosine_last", "cosine_whole", "cosine_max"])


def _correlations(read: dict[str, pd.DataFrame], table: int) -> pd.DataFrame:
    """Ours with intervals, published beside; then the rows that are cited; then averages."""
    printed = pd.concat([published("table3"), published("table4")])
    inside, own = table == 3, read["correlations"]
    rows = [
        {
            "set": one["set"],
            "metric": one["method"],
            **{key: one[key] for key in ("value", "low", "high", "q", "seeds")},
            BY_DRAWING: interval(one["drawn_low"], one["drawn_high"], ".1f"),
            "published": _printed(printed, _name(one["set"]), PUBLISHED.get(str(one["method"]))),
        }
        for one in own[own["in_domain"] == inside].to_dict("records")
    ]
    shown = {_name(row["set"]) for row in rows}
    ours = {*PUBLISHED.values()}
    rows += [
        {"set": one["dataset"], "metric": f"{one['metric']} (cited)", "published": one["spearman"]}
        for one in printed.to_dict("records")
        if one["dataset"] in shown and one["metric"] not in ours
    ]
    called = AVERAGES if inside else {"out-of-domain": "Average"}
    mine = _groups(own)
    for one in read["averages"].to_dict("records"):
        group = str(one["over"])
        if inside != (group in ("out-of-domain", "all")):
            name = same_members(table, called.get(group, ""), mine[group])
            rows.append(
                {
                    "set": f"average of {one['sets']}: {group}",
                    "metric": one["method"],
                    **{key: one[key] for key in ("value", "low", "high", "seeds")},
                    "published": _printed(printed, name, PUBLISHED.get(str(one["method"]))),
                }
            )
    keys = ["set", "metric", "value", "low", "high", BY_DRAWING, "q", "seeds", "published"]
    return pd.DataFrame(rows, columns=keys)


def _printed(table: pd.DataFrame, dataset: str, metric: str | None) -> float:
    found = table[(table["dataset"] == dataset) & (table["metric"] == metric)]["spearman"]
    return float(found.iloc[0]) if len(found) else np.nan


def table5(few: pd.DataFrame, own: pd.DataFrame) -> pd.DataFrame:
    """Few-shot transfer beside the published, and the averages over its sets; ``own``: the
    correlations, which say what is in-domain."""
    printed = published("table5")
    names = {"panel-mean": "PoE-avg", "single": "Single-T"}
    inside = dict(zip(own["set"], own["in_domain"], strict=True))
    shown = [(name, bool(inside[name])) for name in dict.fromkeys(few["set"]) if name in inside]
    averages, called = [few], {}
    for group, sets in groups(shown).items():
        some = few[few["set"].isin(sets)].groupby(["method", "by", "percent"], sort=False)
        mean = some[["draws", "all_items", "held_out"]].mean().reset_index()
        name = f"average of {len(sets)}: {group}"
        called[name] = same_members(5, AVERAGES.get(group, ""), [_name(one) for one in sets])
        averages.append(mean.assign(set=name, draws=mean["draws"].astype(int)))
    frame = pd.concat(averages, ignore_index=True)
    frame["published"] = [
        _one(
            printed[
                (printed["dataset"] == called.get(str(one["set"]), _name(one["set"])))
                & (printed["k_percent"] == one["percent"])
                & (printed["model"] == names.get(str(one["method"]), ""))
                & (one["by"] == "items")  # the published draws are of items
            ]["spearman"]
        )
        for one in frame.to_dict("records")
    ]
    return frame


def table7(hits: pd.DataFrame) -> pd.DataFrame:
    printed = published("table7").set_index("model")
    names = {"selection-direct": "PoE-direct", "selection-adapter": "PoE-adapter"}
    persona = {"none": "dialogue_only", "original": "original", "revised": "revised"}
    ours = {
        (names[str(one["method"])], str(one["persona"])): one for one in hits.to_dict("records")
    }
    rows: list[dict[Hashable, Any]] = []
    for model in reversed(printed.index):
        for setting, column in persona.items():
            mine = ours.get((str(model), setting), {"method": f"{model} (cited)"})
            rows.append({**mine, "persona": setting, "published": printed.loc[model, column]})
    return pd.DataFrame(rows, columns=[*hits.columns, "published"])


def _table8(read: dict[str, pd.DataFrame]) -> pd.DataFrame:
    printed = published("table8").set_index("dataset")
    own, averages = read["correlations"], read["averages"]
    rows = []
    shown = [*MERGED, *CONTROLS]
    for one in own[own["method"].isin(shown)].to_dict("records"):
        rows.append({**one, "name": _name(one["set"])})
    mine = _groups(own)
    for one in averages[averages["method"].isin(shown)].to_dict("records"):
        group, set_name = str(one["over"]), f"average of {one['sets']}: {one['over']}"
        name = same_members(8, AVERAGES.get(group, ""), mine[group])
        rows.append({**one, "set": set_name, "name": name})
    keys = ["set", "method", "value", "low", "high", "seeds"]
    frame = pd.DataFrame(rows, columns=[*keys, "name"])
    frame["published"] = [
        float(printed[MERGED[str(one["method"])]].get(str(one["name"]), np.nan))
        if one["method"] in MERGED
        else np.nan
        for one in frame.to_dict("records")
    ]
    return frame.drop(columns="name")


def _resources(trainings: pd.DataFrame) -> pd.DataFrame:
    grouped = trainings.groupby("kind", sort=False)
    frame = grouped.agg(
        trainings=("label", "size"),
        hours=("hours", "mean"),
        all_hours=("hours", "sum"),
        parameters=("parameters", "max"),
        trained=("trained", "max"),
        rounds=("rounds", "mean"),
        dev_score=("dev_score", "mean"),
        test_accuracy=("test_accuracy", "mean"),
        test_constant=("test_constant", "mean"),
        test_balanced=("test_balanced", "mean"),
        hardware=("hardware", "first"),
    ).reset_index()
    cited = published("resources").to_dict("records")
    more = [
        {
            "kind": f"{row['model']} (cited)",
            "published": "; ".join(
                f"{str(name).replace('_', ' ')} {value}"
                for name, value in row.items()
                if name != "model" and not absent(value)
            ),
        }
        for row in cited
    ]
    return pd.concat([frame, pd.DataFrame(more)], ignore_index=True)


def _one(values: pd.Series) -> float:
    return float(values.iloc[0]) if len(values) else np.nan


def _groups(own: pd.DataFrame) -> dict[str, list[str]]:
    """Average → its sets as the paper calls them."""
    shown = own.drop_duplicates("set")[["set", "in_domain"]].itertuples(index=False, name=None)
    return {group: [_name(one) for one in sets] for group, sets in groups(shown).items()}


def _name(rated: object) -> str:
    """The paper's name of a rated set."""
    one = RATED.get(str(rated))
    return one.published if one else str(rated)


# --- as people read them ------------------------------------------------------------------------


def _layout(frame: pd.DataFrame) -> Layout:
    """Every column under its name; intervals in one column."""
    shown = frame.copy()
    if {"low", "high"} <= {*shown.columns}:
        ends = [interval(a, b, ".1f") for a, b in zip(shown["low"], shown["high"], strict=True)]
        shown.insert(list(shown.columns).index("low"), "95 % interval", ends)
        shown = shown.drop(columns=["low", "high"])
    for name in {"p", "q", "t_p", "t_q", "hours", "all_hours"} & {*shown.columns}:
        text = p_value if name[-1] in "pq" else partial(number, form=".3g")
        shown[name] = [text(value) for value in shown[name]]
    for name in COUNTS & {*shown.columns}:
        shown[name] = shown[name].astype("Int64")
    return plain_layout(shown)
