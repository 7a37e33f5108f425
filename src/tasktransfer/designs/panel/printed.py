"""What is read of a study, and the rows of its correlations: Tables III, IV and VIII, differences,
experts and ceilings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from tasktransfer.designs.panel import columns
from tasktransfer.designs.panel import published as paper
from tasktransfer.designs.panel.collect import panel_config
from tasktransfer.designs.panel.names import (
    FANS,
    FEW_NAMES,
    MERGED,
    PERSONAS,
    PUBLISHED,
    domain_of,
    groups,
    paper_name,
    start_of,
)
from tasktransfer.designs.panel.published import AVERAGES, members
from tasktransfer.designs.panel.stand_ins import LEAKS_KEPT
from tasktransfer.present.marks import MARK
from tasktransfer.present.published import Published, beside, notes_of
from tasktransfer.present.published_columns import PUBLISHED as COLUMN
from tasktransfer.present.view import View
from tasktransfer.results.study import Study
from tasktransfer.stats.false_discovery import false_discovery
from tasktransfer.tables.collected import common_columns, read_tables
from tasktransfer.tables.metadata import Metadata

PrintedRow = dict[str, Any]
OF = "of Zhang et al., PoE"
FEWER = "FEWER THERE: "
WORDS = "word-overlap and length are read off the words: no run is behind them."
LARGE = ("ratings", "items", "choices", "few_shot")
"""Tables of single ratings, of which nothing is printed."""


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
    starts = [start_of(m, p) for p in (0, *(section.percent if section else ())) for m in FEW_NAMES]
    return {
        **metadata.order,
        "rater": list(dict.fromkeys([*_cited_metrics(), *PUBLISHED, *methods])),
        "merged": [*MERGED],
        "start": starts,
        "cited start": list(dict.fromkeys(map(start_of, cited["model"], cited["k_percent"]))),
        "split": ["train", "dev", "test"],
        "persona": [*PERSONAS],
    }


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
    rows: list[PrintedRow] = []
    for name in sets:
        some = own[own["set"] == name].drop(columns=["domain", "p", "pearson", "kendall"])
        rows += [{**row, "group": "", "members": name} for row in records_of(some)]
    for group, several in groups([(name, bool(inside[name])) for name in sets]).items():
        named = {
            "set": f"average of {len(several)}: {group}",
            "group": group,
            "members": "+".join(several),
            "in_domain": group not in ("out-of-domain", "all"),
        }
        some = averages[averages["over"] == group].drop(columns=["over", "sets", "p"])
        rows += [{**row, **named} for row in records_of(some)]
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
        differs=lambda row: other_members(table, average(row), row["members"]),
    )
    return beside(frame, theirs, view.metadata)


def other_members(table: int, average: str | None, sets: str) -> str:
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
    several = frame["p"].where(frame["seeds"] > 1)
    families = several.groupby([frame["method"], frame["expert"]], sort=False)
    frame["q"] = families.transform(false_discovery)
    return frame


def ceilings(view: View) -> pd.DataFrame:
    """What ratings allow, and what nobody trained reaches."""
    return view["ceilings"].drop(columns=["utterances", "context_words", "response_words"])


def records_of(frame: pd.DataFrame) -> list[PrintedRow]:
    """A frame's rows."""
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]
