"""Rows of Tables III, IV and VIII, and of the tables of differences, experts and ceilings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from tasktransfer.designs.panel import published as paper
from tasktransfer.designs.panel.config import get_config
from tasktransfer.designs.panel.encoders import describe_cosines
from tasktransfer.designs.panel.names import (
    BROUGHT,
    FEW_NAMES,
    MERGED,
    PERSONAS,
    PUBLISHED,
    format_transfer_column,
    get_domain,
    get_paper_name,
    group_sets_by_average,
    has_domain_models,
)
from tasktransfer.designs.panel.published import AVERAGES, list_members
from tasktransfer.designs.panel.substitutes import LEAKS_KEPT
from tasktransfer.errors import format_quantity
from tasktransfer.present.columns import PUBLISHED as COLUMN
from tasktransfer.present.marks import MARK
from tasktransfer.present.published import (
    PublishedValues,
    add_published_columns,
    list_published_notes,
)
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import Metadata
from tasktransfer.results.study import Study
from tasktransfer.stats.bootstrap import compute_q_values

PrintedRow = dict[str, Any]
OF = "of Zhang et al., PoE"
FEWER = "fewer available: "


def complete_metadata(frames: Frames) -> Frames:
    """Return the frames with marks for important facts, and with names in the paper's order."""
    metadata = frames.metadata
    facts, order = _make_facts(metadata), _make_order(frames.study, metadata)
    return frames.replace({}, replace(metadata, facts=facts, order=order))


def _make_facts(metadata: Metadata) -> dict[str, str]:
    """Return the tables' facts, and turn the facts that affect every number into marks."""
    facts = {f"{MARK}{k}" if k == LEAKS_KEPT else k: v for k, v in metadata.facts.items()}
    requested, _, fewer = facts.get("pairs", "").partition(f"; {FEWER}")
    if fewer:
        facts |= {"pairs": requested, f"{MARK}FEWER PAIRS": f"{fewer}, fewer than requested"}
    return facts


def _make_order(study: Study, metadata: Metadata) -> dict[str, Sequence[str]]:
    """Map each kind of name to its names in the paper's order, for printed tables."""
    section, methods = get_config(study).few_shot, metadata.order.get("method", ())
    cited = paper.read_table("table6")
    starts = [
        format_transfer_column(m, p)
        for p in (0, *(section.percentages if section else ()))
        for m in FEW_NAMES
    ]
    return {
        **metadata.order,
        "rater": list(dict.fromkeys([*_list_cited_metrics(), *PUBLISHED, *methods])),
        "merged": [*MERGED],
        "start": starts,
        "cited start": list(
            dict.fromkeys(map(format_transfer_column, cited["model"], cited["k_percent"]))
        ),
        "split": ["train", "dev", "test"],
        "persona": [*PERSONAS],
    }


# --- correlations: Tables III, IV and VIII --------------------------------------------------------


def compute_table3(frames: Frames) -> pd.DataFrame:
    """Return in-domain correlations by rated set and method, averages, and cited metrics."""
    return _join_cited_metrics(frames, 3)


def compute_table4(frames: Frames) -> pd.DataFrame:
    """Return out-of-domain correlations, averages over all sets, and cited metrics."""
    return _join_cited_metrics(frames, 4)


def compute_table8(frames: Frames) -> pd.DataFrame:
    """Return the correlations of experts whose weights are merged."""
    frame = _make_correlation_rows(frames)
    return _join_published_values(frame[frame["method"].isin(MERGED)], frames, 8)


def _join_cited_metrics(frames: Frames, table: int) -> pd.DataFrame:
    inside, every = table == 3, _make_correlation_rows(frames)
    here = (
        every["in_domain"] & ~every["group"].isin(["out-of-domain", "all"])
        if inside
        else ~every["in_domain"] | every["group"].isin(["out-of-domain", "all"])
    )
    ours = every[here & ~every["method"].isin({*MERGED} - {*PUBLISHED})]
    shown = ours.drop_duplicates("set")[["set", "group", "members"]].to_dict("records")
    cited = [{**named, "method": metric} for named in shown for metric in _list_cited_metrics()]
    both = pd.DataFrame([*ours.to_dict("records"), *cited], columns=ours.columns)
    frame = _join_published_values(both, frames, table)
    return frame if COLUMN in frame else ours


def _make_correlation_rows(frames: Frames) -> pd.DataFrame:
    """Return one row per rated set and method, followed by one row per average and method.

    Sets have the study's order. The column ``group`` is the group of an average, and ``members``
    are its sets. ``experts`` are the experts that rate them, for methods with one model per domain.
    Both are joined by +.
    """
    own, averages = frames["correlations"], frames["averages"]
    inside = dict(zip(own["set"], own["in_domain"], strict=True))
    sets = frames.metadata.order_names("set", own["set"])
    rows: list[PrintedRow] = []
    for name in sets:
        some = own[own["set"] == name].drop(columns=["domain", "p", "pearson", "kendall"])
        rows += [{**row, "group": "", "members": name} for row in list_printed_rows(some)]
    for group, several in group_sets_by_average(
        [(name, bool(inside[name])) for name in sets]
    ).items():
        named = {
            "set": f"average of {len(several)}: {group}",
            "group": group,
            "members": "+".join(several),
            "in_domain": group not in ("out-of-domain", "all"),
        }
        some = averages[averages["over"] == group].drop(columns=["over", "sets", "p"])
        rows += [{**row, **named} for row in list_printed_rows(some)]
    frame = pd.DataFrame(rows)
    if brought := frames.metadata.order.get(BROUGHT):
        frame["brought"] = frame["method"].isin(brought)
    frame["experts"] = [
        join_experts(row["members"].split("+"), frames.metadata)
        if has_domain_models(str(row["method"]))
        else ""
        for row in rows
    ]
    return frame


def join_experts(sets: Sequence[str], metadata: Metadata) -> str:
    """Return the experts that rate the sets, joined by +.

    They are the expert of a set's domain, or all experts for a set outside the trained domains.
    """
    domains = metadata.order.get("domain", ())
    raters = ([get_domain(s)] if get_domain(s) in domains else domains for s in sets)
    return "+".join(dict.fromkeys(domain for several in raters for domain in several))


def _list_cited_metrics() -> list[str]:
    """Return the metrics of Tables III and IV that are only cited from the paper."""
    return [m for m in paper.read_table("table3")["metric"].unique() if m not in PUBLISHED.values()]


def _join_published_values(frame: pd.DataFrame, frames: Frames, table: int) -> pd.DataFrame:
    if table == 8:
        wide = paper.read_table("table8").melt("dataset", [*MERGED.values()], "metric", "spearman")
        values, names = wide, MERGED
    else:
        values = pd.concat([paper.read_table("table3"), paper.read_table("table4")])
        names = {**PUBLISHED, **{metric: metric for metric in _list_cited_metrics()}}

    def get_published_average(row: Mapping[str, Any]) -> str | None:
        only = table == 4 and row["group"] == "out-of-domain"
        return "Average" if only else AVERAGES.get(row["group"])

    theirs = PublishedValues(
        values,
        "spearman",
        {
            "dataset": lambda row: (
                get_published_average(row) if row["group"] else get_paper_name(row["set"])
            ),
            "metric": lambda row: names.get(row["method"]),
        },
        differs=lambda row: describe_other_members(
            table, get_published_average(row), row["members"]
        ),
    )
    return add_published_columns(frame, theirs, frames.metadata)


def describe_other_members(table: int, average: str | None, sets: str) -> str:
    """Return how the sets of a published average differ from ours, or "" if they do not."""
    if not average:
        return ""
    theirs, ours = list_members(table, average), {get_paper_name(name) for name in sets.split("+")}
    if theirs == ours:
        return ""
    own = format_quantity(len(ours), "set") if len(ours) != len(theirs) else "other sets"
    return f"{average} of {len(theirs)} sets, here of {own}"


def describe_table3(frames: Frames, frame: pd.DataFrame) -> list[str]:
    """Return the notes of Table III."""
    return [
        *_make_reading_notes(frames, frame),
        *list_published_notes(frame, frames.metadata, f"Table III {OF}"),
    ]


def describe_table4(frames: Frames, frame: pd.DataFrame) -> list[str]:
    """Return the notes of Table IV."""
    return [
        *_make_reading_notes(frames, frame),
        *list_published_notes(frame, frames.metadata, f"Table IV {OF}"),
    ]


def describe_table8(frames: Frames, frame: pd.DataFrame) -> list[str]:
    """Return the notes of Table VIII."""
    return list_published_notes(frame, frames.metadata, f"Table VIII {OF}")


def _make_reading_notes(frames: Frames, frame: pd.DataFrame) -> list[str]:
    unsure = (
        "° Not significant (q > 0.05; the false-discovery rate is controlled over the rated sets "
        "of each method)."
    )
    text = (
        "Intervals (95 %) are over contexts and seeds. For one seed, and for untrained methods, "
        "the intervals are over contexts only. The columns bootstrap_low and bootstrap_high of the "
        "CSV file contain bootstrap intervals from resampling contexts and seeds together."
    )
    cosines = describe_cosines(get_config(frames.study))
    return [*([unsure] if (frame["q"] > 0.05).any() else []), text, cosines]


# --- beyond the paper -----------------------------------------------------------------------------


def list_differences(frames: Frames) -> pd.DataFrame:
    """Return differences between two methods' correlations, for ratings averaged over seeds."""
    frame = list_tests(frames)
    return frame[frame["seed"] == "mean"]


def list_tests(frames: Frames) -> pd.DataFrame:
    """Return differences for averaged ratings and for each seed, with Williams' tests."""
    frame = frames["tests"]
    pair = [f"{a} less {b}" for a, b in zip(frame["method"], frame["against"], strict=True)]
    raters = [join_experts([name], frames.metadata) for name in frame["set"]]
    return frame.assign(pair=pair, experts=raters)


def list_expert_correlations(frames: Frames) -> pd.DataFrame:
    """Return each expert's correlation on each set, and the own expert minus the others' mean."""
    frame = frames["experts"].copy()
    several = frame["p"].where(frame["seeds"] > 1)
    families = several.groupby([frame["method"], frame["expert"]], sort=False)
    frame["q"] = families.transform(compute_q_values)
    return frame


def list_ceilings(frames: Frames) -> pd.DataFrame:
    """Return the upper bounds of correlations, and the correlations of untrained methods."""
    return frames["ceilings"].drop(columns=["utterances", "context_words", "response_words"])


def list_printed_rows(frame: pd.DataFrame) -> list[PrintedRow]:
    """Return a frame's rows as dictionaries."""
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]
