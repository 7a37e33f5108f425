"""The study's tables for people, and its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.designs.empathetic import columns
from tasktransfer.designs.empathetic.config import EmpatheticConfig, EvaluationConfig
from tasktransfer.designs.empathetic.figures import draw_ratios, draw_scores
from tasktransfer.designs.empathetic.human import figure5, published, table5
from tasktransfer.designs.empathetic.statistics import NOT_COMPARABLE
from tasktransfer.results.study import Study
from tasktransfer.tables.metadata import Metadata, in_order
from tasktransfer.tables.numbers import absent, interval, number, p_value
from tasktransfer.tables.printed import Layout, write_table
from tasktransfer.tables.published import beside
from tasktransfer.tables.published import caption as published_caption
from tasktransfer.tables.store import read_frame

CITED = "Human judgements of the paper: cited, not made again."
OTHER_SETTING = "Published numbers are of another setting, and no reproduction."
PAPER_NAMES = {
    "pretrained": "Pretrained",
    "base": "Base",
    "multitask": "Multitask",
    "ensemble-plain": "Ensem-DM",
    "ensemble-tuned": "Ensem-DM+",
    "ensemble-tags": "Ensem-Tran",
    "pretrained-large": "PretrainedLarge",
    "base-large": "BaseLarge",
    **{
        f"{what.lower()}prepend-{k}": f"{what}Prepend-{k}"
        for what in ("Emo", "Topic")
        for k in (1, 3, 5)
    },
}
"""Method → the paper's name of what it stands for."""
PRINTED_AS = {
    ("retrieval", "p_at_1"): "p_at_1_100",
    ("retrieval", "bleu"): "retrieval_avg_bleu",
    ("generation", "perplexity"): "perplexity",
    ("generation", "bleu"): "generation_avg_bleu",
}


PAPERS_BLOCK = 100
"""Candidates of the published P@1,100."""


def show(study: Study) -> None:
    """Write every printed table and figure."""
    assert isinstance(study.config, EmpatheticConfig)
    block = study.config.evaluation.block
    folder, out = Path(study.tables), Path(study.figures)
    read: dict[str, pd.DataFrame] = {}
    metadata: Metadata | None = None
    for name, described in {**columns.TABLES, **columns.STATISTICS}.items():
        if name != "rows":
            read[name], metadata = read_frame(folder / f"{name}.parquet", described)
    assert metadata is not None
    out.mkdir(parents=True, exist_ok=True)
    caption = metadata.mark + " ".join(
        f"{name} is {text}." for name, text in metadata.facts.items()
    )
    tables = {
        "table2": (
            _table2(read["summary"], metadata, block),
            f"{_blocks(study.config.evaluation)} {_intervals(read['summary'])} {OTHER_SETTING} "
            f"{caption}",
        ),
        "table3": (published("table3"), CITED),
        "table4": (_table4(read["costs"]), f"Time and hardware of these records. {caption}"),
        "table5": (_table5(), CITED),
        "table7": (_table7(read["labels"]), caption),
        "table9": (table9(read["summary"]), caption),
        "differences": (
            _marked(read["differences"]),
            f"Method minus Base, the same seeds. {_intervals(read['summary'])} {caption}",
        ),
        "by_emotion": (
            _marked(read["by_emotion"]),
            f"{_blocks(study.config.evaluation)} {caption}",
        ),
        "pools_chosen": (_marked(read["pools_chosen"]), f"Where replies are from. {caption}"),
    }
    for name, (whole, said) in tables.items():
        frame = whole if said == CITED else beside(whole, metadata)
        text = published_caption(frame, said, OTHER_SETTING)
        write_table(out, name, frame, metadata, text, layout=layout_of(frame))
    summary = _marked(read["summary"])
    draw_scores(summary, metadata, out, _intervals(summary), caption)
    draw_ratios(
        figure5(), "Figure 5 of the paper (cited human judgements)", out, "human_comparisons"
    )


# --- tables -------------------------------------------------------------------------------------


def _marked(frame: pd.DataFrame) -> pd.DataFrame:
    """Methods that are told what the others must find out carry that in their names."""
    names = {name: f"{name} (told the label: not comparable)" for name in NOT_COMPARABLE}
    return frame.assign(method=frame["method"].replace(names))


def _intervals(summary: pd.DataFrame) -> str:
    over = "dialogues; one seed says nothing of others"
    if (summary["seeds"] > 1).any():
        once = ", where there is one seed over dialogues alone"
        over = "dialogues and seeds" + ("" if (summary["seeds"] > 1).all() else once)
    return f"95 % intervals are over {over}; those of perplexity are made of its logarithm."


def _blocks(evaluation: EvaluationConfig) -> str:
    """Among which candidates P@1 is."""
    text = f"P@1 is among the {evaluation.block} replies of a block of consecutive test rows"
    if evaluation.limit is None:
        return f"{text}."
    return f"{text}, in {evaluation.limit // evaluation.block} blocks drawn of all."


def _table2(summary: pd.DataFrame, metadata: Metadata, block: int) -> pd.DataFrame:
    """Ours, the published beside it, the difference, and our interval. P@1 has a published value
    where it is among as many candidates."""
    printed = published("table2")
    rows = []
    wanted = [tuple(key) for key in PRINTED_AS]
    for one in summary.itertuples():
        if (one.setting, one.measure) not in wanted:
            continue
        column = PRINTED_AS[str(one.setting), str(one.measure)]
        pool = one.pool or "ED"
        name = PAPER_NAMES.get(str(one.method), "")
        same = printed[(printed["model"] == name)]
        if one.setting == "retrieval" and one.measure == "bleu":
            same = same[same["candidates"] == pool]
        values = same[column].dropna()
        told = len(values) and (one.measure != "p_at_1" or block == PAPERS_BLOCK)
        theirs = float(values.iloc[0]) if told else np.nan
        rows.append(
            {
                "setting": one.setting,
                "method": one.method,
                "measure": one.measure,
                "pool": one.pool,
                "value": one.value,
                "low": one.low,
                "high": one.high,
                "seeds": one.seeds,
                "published": theirs,
                "difference": float(str(one.value)) - theirs,
            }
        )
    frame = pd.DataFrame(rows)
    order = in_order(frame["method"], metadata.order.get("method", ()))
    ranks = {name: rank for rank, name in enumerate(order)}
    by = ["setting", "measure", "pool", "method"]
    key = lambda values: values.map(ranks) if values.name == "method" else values  # noqa: E731
    ordered = frame.sort_values(by, key=key, ascending=[False, True, True, True])
    return _marked(ordered.reset_index(drop=True))


def _table4(costs: pd.DataFrame) -> pd.DataFrame:
    """Parameters and time: ours of the records, the paper's as printed."""
    mine = costs[costs["setting"] != "classifier"]
    grouped = mine.groupby(["setting", "method"], sort=False)
    frame = grouped.agg(
        parameters=("parameters", "max"),
        hours=("hours", "mean"),
        all_hours=("all_hours", "mean"),
        hardware=("hardware", "first"),
        examples=("examples", "max"),
    ).reset_index()
    frame["parameters"] = frame["parameters"].astype("Int64").mask(frame["parameters"] == 0)
    printed = published("table4").set_index(["setting", "model"])
    keys = [
        (s, PAPER_NAMES.get(m, "")) for s, m in zip(frame["setting"], frame["method"], strict=True)
    ]
    for name in ("parameters", "time", "devices"):
        frame[f"published_{name}"] = [
            str(printed.loc[key, name]) if key in printed.index else "" for key in keys
        ]
    return frame


def _table5() -> pd.DataFrame:
    """The printed means, and what Figure 5 gives."""
    again = table5(figure5())
    frame = published("table5").copy()
    frame["from_figure5"] = [again[name] for name in frame["a_vs_b"]]
    return frame


def _table7(labels: pd.DataFrame) -> pd.DataFrame:
    printed = published("table7").set_index("label")["percent"]
    frame = labels.copy()
    frame["published"] = [float(printed.get(label, np.nan)) for label in frame["label"]]
    frame["difference"] = frame["percent"] - frame["published"]
    return frame


def table9(summary: pd.DataFrame) -> pd.DataFrame:
    """Accuracy on ED and ED-CUT beside the paper's; the rows of Felbo et al. are cited there."""
    printed = published("table9").set_index("dataset")
    ours = summary[summary["setting"] == "classifier"]
    theirs = {"fasttext-emotion": "fasttext", "classifier-tuned": "deepmoji_last"}
    sets = {
        "accuracy": "ED",
        "accuracy_cut": "ED-CUT",
        "accuracy_contexts": "contexts, as prepended",
        "accuracy_training_contexts": "contexts of training, as prepended",
    }
    rows: list[dict[str, Any]] = []
    for one in ours.itertuples():
        column, of = theirs.get(str(one.method), ""), sets.get(str(one.measure), "")
        value = 100 * float(printed[column][of]) if column and of in printed.index else np.nan
        rows.append(
            {
                "classifier": one.method,
                "data": of if column else "its own labels",
                "accuracy": one.value,
                "low": one.low,
                "high": one.high,
                "published": value,
            }
        )
    cited = [
        {
            "classifier": f"{name} (cited)",
            "data": of,
            "published": 100 * float(printed[name][of]),
        }
        for of in ("ED", "ED-CUT")
        for name in ("deepmoji_new", "deepmoji_full", "deepmoji_chain_thaw")
    ]
    return pd.DataFrame([*rows, *cited])


def layout_of(frame: pd.DataFrame) -> Layout:
    """Every column under its name; intervals in one column."""
    shown = frame.copy()
    if {"low", "high"} <= set(shown.columns):
        ends = [interval(a, b, ".2f") for a, b in zip(shown["low"], shown["high"], strict=True)]
        shown.insert(list(shown.columns).index("low"), "95 % interval", ends)
        shown = shown.drop(columns=["low", "high"])
    for name in ("p", "q"):
        if name in shown:
            shown[name] = [p_value(value) for value in shown[name]]
    texts = [
        tuple(_text(name, value) for name, value in row.items())
        for row in shown.to_dict(orient="records")
    ]
    numeric = [
        pd.api.types.is_numeric_dtype(frame.get(name, pd.Series(dtype=str))) for name in shown
    ]
    first = numeric.index(True) if True in numeric else len(numeric)
    return Layout(tuple(map(str, shown.columns)), first, (tuple((text,) for text in texts),))


def _text(name: Any, value: Any) -> str:
    if isinstance(value, str | bool):
        return str(value)
    if absent(value):
        return "–"
    if isinstance(value, int | np.integer):
        return number(value, ",d")
    return number(value, ".4f" if "hours" in str(name) else ".2f")
