"""The rows of the printed tables: tables I to VIII beside the paper's, and more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.designs.panel import columns
from tasktransfer.designs.panel import published as paper
from tasktransfer.designs.panel.collect import panel_config
from tasktransfer.designs.panel.names import (
    FANS,
    MERGED,
    PUBLISHED,
    domain_of,
    groups,
    paper_name,
)
from tasktransfer.designs.panel.published import AVERAGES, members
from tasktransfer.designs.panel.sources.cards import RATED, TINY_RATED
from tasktransfer.designs.panel.stand_ins import LEAKS_KEPT
from tasktransfer.present.marks import MARK
from tasktransfer.present.published import PUBLISHED as COLUMN
from tasktransfer.present.published import Published, beside, notes_of, published_column
from tasktransfer.present.view import View
from tasktransfer.results.study import Study
from tasktransfer.stats.false_discovery import false_discovery
from tasktransfer.tables.collected import common_columns, read_tables
from tasktransfer.tables.metadata import Metadata

Row = dict[str, Any]
OF = "of Zhang et al., PoE"
FEWER = "FEWER THERE: "
LARGE = ("ratings", "items", "choices", "few_shot")
"""Tables of single ratings, of which nothing is printed."""
EVERY_SET = {**RATED, **TINY_RATED}
CORPUS_NAMES = {"Empathetic": "EmpatheticDialogue", "Reddit": "REDDIT"}
SPLITS = {"train": "training", "dev": "validation"}
PERSONAS = {"none": "dialogue_only", "original": "original", "revised": "revised"}
SELECTIONS = {"selection-direct": "PoE-direct", "selection-adapter": "PoE-adapter"}
CANDIDATES, CONTEXTS = 20, 7512
"""Of Table VII."""
FEW_NAMES = {"single": "Single-T", "panel-mean": "PoE-avg"}
ALL_ITEMS, HELD_OUT = "all items", "held-out items"
MEASURES = {
    "instances": "items",
    "contexts": "contexts",
    "annotators": "annotators",
    "utterances": "utterances",
    "context_words": "context_words",
    "response_words": "response_words",
}
"""Of Table II → column of the ceilings."""


def read(study: Study) -> tuple[dict[str, pd.DataFrame], Metadata]:
    """The collected tables and the statistics, but for single ratings."""
    common = {
        name: described
        for name, described in common_columns(columns.ABOUT).items()
        if name in ("resources", "missing", "problems")
    }
    own = {**columns.TABLES, **columns.STATISTICS}
    small = {name: described for name, described in own.items() if name not in LARGE}
    frames, metadata = read_tables(study, {**common, **small})
    return frames, replace(metadata, facts=_facts(metadata), order=_order(study, metadata))


def _facts(metadata: Metadata) -> dict[str, str]:
    """Those of the tables; what every number suffers from becomes a mark."""
    facts = {f"{MARK}{k}" if k == LEAKS_KEPT else k: v for k, v in metadata.facts.items()}
    asked, _, fewer = facts.get("pairs", "").partition(f"; {FEWER}")
    if fewer:
        facts |= {"pairs": asked, f"{MARK}FEWER PAIRS": f"fewer than asked for in {fewer}"}
    return facts


def _order(study: Study, metadata: Metadata) -> dict[str, Sequence[str]]:
    """The columns of printed tables, those that the paper has in its order."""
    section, methods = panel_config(study).few_shot, metadata.order.get("method", ())
    cited = paper.published("table6")
    starts = [_start(m, p) for p in (0, *(section.percent if section else ())) for m in FEW_NAMES]
    return {
        **metadata.order,
        "rater": list(dict.fromkeys([*_cited_metrics(), *PUBLISHED, *methods])),
        "merged": [*MERGED],
        "start": starts,
        "cited start": list(dict.fromkeys(map(_start, cited["model"], cited["k_percent"]))),
        "split": ["train", "dev", "test"],
        "persona": [*PERSONAS],
    }


def _start(method: str, percent: int) -> str:
    """A column of Tables V and VI; ``explain`` finds either part."""
    return f"{method}+{percent}%" if percent else f"{method}+before"


# --- correlations: Tables III, IV and VIII --------------------------------------------------------


def table3(view: View) -> pd.DataFrame:
    """In-domain correlations by rated set and method, averages, and the metrics that are cited."""
    return _with_cited(view, 3)


def table4(view: View) -> pd.DataFrame:
    """The same of sets out of every domain, and averages of all sets."""
    return _with_cited(view, 4)


def table8(view: View) -> pd.DataFrame:
    """Experts whose weights are merged."""
    frame = _correlations(view)
    return _beside_correlations(frame[frame["method"].isin(MERGED)], view, 8)


def _with_cited(view: View, table: int) -> pd.DataFrame:
    inside, every = table == 3, _correlations(view)
    here = (
        every["in_domain"] & ~every["group"].isin(["out-of-domain", "all"])
        if inside
        else ~every["in_domain"] | every["group"].isin(["out-of-domain", "all"])
    )
    ours = every[here & ~every["method"].isin({*MERGED} - {*PUBLISHED})]
    shown = ours.drop_duplicates("set")[["set", "group", "members"]].to_dict("records")
    cited = [{**named, "method": metric} for named in shown for metric in _cited_metrics()]
    both = pd.DataFrame([*ours.to_dict("records"), *cited], columns=ours.columns)
    frame = _beside_correlations(both, view, table)
    return frame if COLUMN in frame else ours


def _correlations(view: View) -> pd.DataFrame:
    """A row a rated set and method, then one an average and method, in the study's order.

    ``group``: what an average is over. ``members``: its sets. ``experts``: those of a method of one
    model a domain that rate them. Both are joined by +.
    """
    own, averages = view["correlations"], view["averages"]
    inside = dict(zip(own["set"], own["in_domain"], strict=True))
    sets = view.metadata.ordered("set", own["set"])
    rows: list[Row] = []
    for name in sets:
        some = own[own["set"] == name].drop(columns=["domain", "p", "pearson", "kendall"])
        rows += [{**row, "group": "", "members": name} for row in _records(some)]
    for group, several in groups([(name, bool(inside[name])) for name in sets]).items():
        named = {
            "set": f"average of {len(several)}: {group}",
            "group": group,
            "members": "+".join(several),
            "in_domain": group not in ("out-of-domain", "all"),
        }
        some = averages[averages["over"] == group].drop(columns=["over", "sets", "p"])
        rows += [{**row, **named} for row in _records(some)]
    frame = pd.DataFrame(rows)
    frame["experts"] = [
        experts_of(row["members"].split("+"), view.metadata) if row["method"] in FANS else ""
        for row in rows
    ]
    return frame


def experts_of(sets: Sequence[str], metadata: Metadata) -> str:
    """The experts that rate some sets, joined by +: the domain's own, elsewhere all."""
    domains = metadata.order.get("domain", ())
    raters = ([domain_of(s)] if domain_of(s) in domains else domains for s in sets)
    return "+".join(dict.fromkeys(domain for several in raters for domain in several))


def _cited_metrics() -> list[str]:
    """The metrics of Tables III and IV that are the paper's alone."""
    return [m for m in paper.published("table3")["metric"].unique() if m not in PUBLISHED.values()]


def _beside_correlations(frame: pd.DataFrame, view: View, table: int) -> pd.DataFrame:
    if table == 8:
        wide = paper.published("table8").melt("dataset", [*MERGED.values()], "metric", "spearman")
        values, names = wide, MERGED
    else:
        values = pd.concat([paper.published("table3"), paper.published("table4")])
        names = {**PUBLISHED, **{metric: metric for metric in _cited_metrics()}}

    def average(row: Mapping[str, Any]) -> str | None:
        only = table == 4 and row["group"] == "out-of-domain"
        return "Average" if only else AVERAGES.get(row["group"])

    theirs = Published(
        values,
        "spearman",
        {
            "dataset": lambda row: average(row) if row["group"] else paper_name(row["set"]),
            "metric": lambda row: names.get(row["method"]),
        },
        differs=lambda row: _other_members(table, average(row), row["members"]),
    )
    return beside(frame, theirs, view.metadata)


def _other_members(table: int, average: str | None, sets: str) -> str:
    """In what the sets of a printed average differ from ours; empty: in nothing."""
    if not average:
        return ""
    theirs, ours = members(table, average), {paper_name(name) for name in sets.split("+")}
    if theirs == ours:
        return ""
    own = f"of {len(ours)}" if len(ours) != len(theirs) else "of others"
    return f"{average} of {len(theirs)} sets, here {own}"


def notes_of_table3(view: View, frame: pd.DataFrame) -> list[str]:
    """How to read correlations."""
    return [*_reading(frame), *notes_of(frame, view.metadata, f"Table III {OF}")]


def notes_of_table4(view: View, frame: pd.DataFrame) -> list[str]:
    """How to read correlations."""
    return [*_reading(frame), *notes_of(frame, view.metadata, f"Table IV {OF}")]


def notes_of_table8(view: View, frame: pd.DataFrame) -> list[str]:
    """Where the published values are from."""
    return notes_of(frame, view.metadata, f"Table VIII {OF}")


def _reading(frame: pd.DataFrame) -> list[str]:
    unsure = "° q > 0.05, of its correlations over the sets: not told apart from none."
    seeds = "Intervals: 95 %, over contexts and seeds; over contexts alone with one seed and where "
    text = [
        f"{seeds}nobody trained. By drawing both together: drawn_low and drawn_high of the CSV."
    ]
    return [*([unsure] if (frame["q"] > 0.05).any() else []), *text]


# --- few-shot transfer: Tables V and VI -----------------------------------------------------------


def table5(view: View) -> pd.DataFrame:
    """Few-shot transfer beside the published, and the averages over its sets."""
    few, own = view["few"], view["correlations"]
    rows = [*_few_rows(few, view), *_few_averages(few, own, view)]
    frame = pd.DataFrame(rows)
    if frame.empty:
        return frame

    def as_printed(row: Mapping[str, Any]) -> str | None:
        # The published draws are of items, and scored on all of them.
        if row["by"] != "items" or row["scored"] != ALL_ITEMS:
            return None
        return AVERAGES.get(row["group"]) if row["group"] else paper_name(row["set"])

    theirs = Published(
        paper.published("table5"),
        "spearman",
        {
            "dataset": as_printed,
            "k_percent": lambda row: row["percent"],
            "model": lambda row: FEW_NAMES.get(row["method"]),
        },
        differs=lambda row: _other_members(5, AVERAGES.get(row["group"]), row["members"]),
    )
    return beside(frame, theirs, view.metadata)


def _few_rows(few: pd.DataFrame, view: View, **named: str) -> Iterator[Row]:
    """A row a set, way of drawing, items that are scored, method and share. What nobody trained
    needs no draw and stands beside either way."""
    ways = [by for by in few["by"].unique() if by]
    for row in _records(few):
        for by in [row["by"]] if row["by"] else ways:
            for scored, value, sd in (
                (ALL_ITEMS, "all_items", "all_sd"),
                (HELD_OUT, "held_out", "held_out_sd"),
            ):
                yield {
                    "set": row["set"],
                    "by": by,
                    "scored": scored,
                    "start": _start(row["method"], row["percent"]),
                    "method": row["method"],
                    "percent": row["percent"],
                    "value": row[value],
                    "sd": row.get(sd, np.nan),
                    "draws": row["draws"],
                    "seed": None if row["percent"] else view.study.config.seeds[0],
                    "group": "",
                    "members": row["set"],
                    **named,
                }


def _few_averages(few: pd.DataFrame, own: pd.DataFrame, view: View) -> Iterator[Row]:
    """Means over sets, of what all of them have."""
    inside = dict(zip(own["set"], own["in_domain"], strict=True))
    shown = [(name, bool(inside[name])) for name in dict.fromkeys(few["set"]) if name in inside]
    for group, sets in groups(shown).items():
        by = few[few["set"].isin(sets)].groupby(["method", "by", "percent"], sort=False)
        mean = by[["draws", "all_items", "held_out"]].mean()[by.size() == len(sets)].reset_index()
        named = {"group": group, "members": "+".join(sets)}
        mean = mean.assign(set=f"average of {len(sets)}: {group}", draws=mean["draws"].astype(int))
        yield from _few_rows(mean, view, **named)


def notes_of_table5(view: View, frame: pd.DataFrame) -> list[str]:
    """How to read transfer."""
    spread = "In brackets: standard deviation over draws." if frame["sd"].notna().any() else ""
    before = "Before: the first seed's model, and what nobody trained. All items: those of training"
    notes = [spread, f"{before} included, as in the paper."]
    return [*filter(None, notes), *notes_of(frame, view.metadata, f"Table V {OF}")]


def table6(view: View) -> pd.DataFrame:
    """Few-shot transfer of MDD-Eval and PoE-avg, cited."""
    frame = paper.published("table6")
    return frame.assign(start=[*map(_start, frame["model"], frame["k_percent"])])


# --- response selection: Table VII ----------------------------------------------------------------


def table7(view: View) -> pd.DataFrame:
    """Hits@1 by persona, ours and the models that are cited."""
    values = paper.published("table7").melt("model", var_name="setting", value_name="hits")
    ours = view["hits"]
    models = [m for m in values["model"].unique() if m not in SELECTIONS.values()]
    cited = [
        {"method": model, "persona": persona, "candidates": CANDIDATES}
        for model in models
        for persona in PERSONAS
    ]
    own = [row for name in SELECTIONS for row in _records(ours[ours["method"] == name])]
    if not own:
        return ours
    theirs = Published(
        values,
        "hits",
        {
            "model": lambda row: SELECTIONS.get(row["method"], row["method"]),
            "setting": lambda row: PERSONAS[row["persona"]],
        },
        differs=_other_choices,
    )
    both = pd.DataFrame([*cited, *own], columns=ours.columns)
    frame = beside(both, theirs, view.metadata, value="hits_at_1")
    return frame if COLUMN in frame else pd.DataFrame(own, columns=ours.columns)


def _other_choices(row: Mapping[str, Any]) -> str:
    if row["method"] not in SELECTIONS or (row["candidates"], row["contexts"]) == (
        CANDIDATES,
        CONTEXTS,
    ):
        return ""
    asked = f"{row['contexts']:,.0f} contexts of {row['candidates']:.0f} candidates"
    return f"{CONTEXTS:,} contexts of {CANDIDATES} candidates, here {asked}"


def notes_of_table7(view: View, frame: pd.DataFrame) -> list[str]:
    """What hits are over."""
    own = frame[frame["contexts"].notna()].drop_duplicates(["method", "candidates"])
    counts = (
        f"{row['method']} among {row['candidates']:.0f} {row['contexts']:,.0f}"
        for row in _records(own)
    )
    over = f"Contexts: {', '.join(counts)}. Intervals: Wilson's, 95 %."
    return [over, *notes_of(frame, view.metadata, f"Table VII {OF}")]


# --- data: Tables I and II ------------------------------------------------------------------------


def table1(view: View) -> pd.DataFrame:
    """Dialogues before and after the filter, and pairs."""
    leaks, pairs = view["leaks"], view["pairs"]
    made = pairs[(pairs["how"] == "") & ~pairs["data"].str.endswith("twin")]
    rows: list[Row] = []
    for row in _records(leaks[leaks["split"] != ""].drop_duplicates(["corpus", "split"])):
        if not row["dialogues"]:
            continue
        own = made[(made["domain"] == row["corpus"]) & (made["split"] == row["split"])]
        counts = {
            "dialogues": row["dialogues"],
            "dialogues without leaks": row["kept"],
            "training pairs": own["pairs"].max() if len(own) else None,
        }
        named = {"corpus": row["corpus"], "split": row["split"]}
        rows += [{**named, "statistic": name, "value": n} for name, n in counts.items()]
    frame = pd.DataFrame(rows, columns=["corpus", "split", "statistic", "value"])
    values = paper.published("table1").melt(["corpus", "statistic"], var_name="split")
    theirs = Published(
        values,
        "value",
        {
            "corpus": lambda row: CORPUS_NAMES.get(row["corpus"], row["corpus"]),
            "statistic": lambda row: row["statistic"],
            "split": lambda row: SPLITS.get(row["split"]),
        },
    )
    frame["value"] = frame["value"].astype(float)
    return beside(frame.dropna(subset="value"), theirs, view.metadata)


def notes_of_table1(view: View, frame: pd.DataFrame) -> list[str]:
    """Where the published values are from."""
    return notes_of(frame, view.metadata, f"Table I {OF}")


def table2(view: View) -> pd.DataFrame:
    """Rated sets: what they have of each measure."""
    rows = [
        {
            "set": row["set"],
            "criterion": EVERY_SET[row["set"]].criterion,
            "measure": measure,
            "value": float(row[column]),
        }
        for row in _records(view["ceilings"])
        for measure, column in MEASURES.items()
    ]
    printed = paper.published("table2")
    measures = [name for name in MEASURES if name in printed]
    theirs = Published(
        printed.melt("dataset", measures, "measure"),
        "value",
        {"dataset": lambda row: paper_name(row["set"]), "measure": lambda row: row["measure"]},
    )
    return beside(pd.DataFrame(rows), theirs, view.metadata)


def published_measure(row: Mapping[str, Any]) -> str:
    """A published value of Table II: instances are counted, the others means."""
    return published_column(",.0f" if row["measure"] == "instances" else ".1f").show(row)


def notes_of_table2(view: View, frame: pd.DataFrame) -> list[str]:
    """What is counted."""
    words = "Words: between spaces, without speakers' names."
    return [words, *notes_of(frame, view.metadata, f"Table II {OF}")]


# --- what the paper has not -----------------------------------------------------------------------


def differences(view: View) -> pd.DataFrame:
    """Differences of two raters' correlations, of ratings averaged over seeds."""
    frame = tests(view)
    return frame[frame["seed"] == "mean"]


def tests(view: View) -> pd.DataFrame:
    """The same of each seed too, and Williams' tests."""
    frame = view["tests"]
    pair = [f"{a} less {b}" for a, b in zip(frame["method"], frame["against"], strict=True)]
    raters = [experts_of([name], view.metadata) for name in frame["set"]]
    return frame.assign(pair=pair, experts=raters)


def experts(view: View) -> pd.DataFrame:
    """Each expert on each set, and the domain's own less the others' mean."""
    frame = view["experts"].copy()
    frame["q"] = frame.groupby(["method", "expert"], sort=False)["p"].transform(false_discovery)
    return frame


def ceilings(view: View) -> pd.DataFrame:
    """What ratings allow, and what nobody trained reaches."""
    return view["ceilings"].drop(columns=["utterances", "context_words", "response_words"])


def pairs(view: View) -> pd.DataFrame:
    """Training pairs by how they were made."""
    return view["pairs"]


def leaks(view: View) -> pd.DataFrame:
    """Dialogues and rated items that share a longer utterance."""
    return view["leaks"]


def resources(view: View) -> pd.DataFrame:
    """Sizes, times and scores of each kind of training."""
    grouped = view["trainings"].groupby("kind", sort=False)
    return grouped.agg(
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


def published_resources(view: View) -> pd.DataFrame:
    """Sizes and times that the paper tells."""
    return paper.published("resources")


def _records(frame: pd.DataFrame) -> list[Row]:
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]
