"""The study's answer in sentences: what fine-tuning changes, and what emotions and topics add."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from tasktransfer.designs.empathetic.methods import BASE, PRETRAINED, paper_name, supervised
from tasktransfer.designs.empathetic.statistics import LOG_PERPLEXITY
from tasktransfer.present.sentences import MOST_Q, listed, with_interval
from tasktransfer.present.view import View
from tasktransfer.tables.columns import Row
from tasktransfer.tables.html import records
from tasktransfer.tables.numbers import counted

MOST = 3
"""Differences that a sentence names; further ones are counted."""
SURE = f"q ≤ {MOST_Q}"


def answer(view: View) -> list[str]:
    """Return sentences made of ``differences``; controls are left out. A difference is significant
    where its interval lies on one side of 0 and q is small, and never by one run."""
    rows = view["differences"]
    of_training = _turned(rows[rows["method"] == PRETRAINED])
    of_labels = rows[rows["method"].map(supervised).astype(bool)]
    both = pd.concat([of_training, of_labels])
    constant = _constant(view["measured"], both)
    if len(both) and (both["seeds"] <= 1).all():
        return [*_by_one_run(of_training, of_labels), *constant]
    of_training, of_labels = (part[part["q"].notna()] for part in (of_training, of_labels))
    return [*_by_training(of_training), *_by_labels(of_labels), *constant]


def _constant(measured: pd.DataFrame, compared: pd.DataFrame) -> Iterator[str]:
    """Yield which runs behind the differences answer the same throughout."""
    methods = {*compared["method"], BASE} if len(compared) else set[str]()
    rows = measured[measured["constant"] & measured["method"].isin(methods)]
    runs = rows.drop_duplicates(["setting", "method", "seed"])
    if len(runs):
        names = [
            f"{paper_name(str(row['method']))} ({row['setting']}, seed {row['seed']})"
            for row in records(runs)
        ]
        yield (
            f"{counted(len(runs), 'run')} behind these differences "
            f"{'gives' if len(runs) == 1 else 'give'} one answer to 99 % of the test set or more: "
            f"{listed(names)}."
        )


def _by_one_run(of_training: pd.DataFrame, of_labels: pd.DataFrame) -> Iterator[str]:
    """Yield the largest differences without a claim: other trainings may come out otherwise."""
    for rows, what in (
        (of_training, "Base minus Pretrained"),
        (of_labels, "Methods with emotion or topic supervision minus Base"),
    ):
        if len(rows):
            size = (rows["difference"] / (rows["high"] - rows["low"])).abs()
            first = rows.loc[size.sort_values(ascending=False, kind="stable").index]
            name = _score if rows is of_training else _named
            yield (f"{what}, one run each: {listed([name(row) for row in records(first)], MOST)}.")
    yield (
        "One run of each method was trained, so no difference is tested: the intervals are over "
        "dialogues alone and say nothing of other trainings. Train two seeds or more (seeds: 3)."
    )


def _turned(rows: pd.DataFrame) -> pd.DataFrame:
    """Base minus the method."""
    return rows.assign(difference=-rows["difference"], low=-rows["high"], high=-rows["low"])


def _sure(rows: pd.DataFrame) -> pd.Series:
    return (rows["q"] <= MOST_Q) & ((rows["low"] > 0) | (rows["high"] < 0))


def _better(rows: pd.DataFrame) -> pd.Series:
    """Whether the sign of a difference is that of better replies: less perplexity, more else."""
    return (rows["difference"] < 0) == (rows["measure"] == LOG_PERPLEXITY)


def _by_training(rows: pd.DataFrame) -> Iterator[str]:
    if rows.empty:
        yield "What fine-tuning changes cannot be told: no model without it is compared with Base."
        return
    better, worse = rows[_sure(rows) & _better(rows)], rows[_sure(rows) & ~_better(rows)]
    if better.empty and worse.empty:
        yield (
            "Whether fine-tuning makes replies better cannot be told: no difference of Base to "
            f"Pretrained is told apart from none (of {len(rows)}, {SURE})."
        )
        return
    parts = [
        f"{what} {listed([_score(row) for row in records(some)])}"
        for what, some in (("significantly improves", better), ("significantly worsens", worse))
        if len(some)
    ]
    others = len(rows) - len(better) - len(worse)
    left = f"; {others} of {len(rows)} measures tell no difference" if others else ""
    yield f"Fine-tuning {' and '.join(parts)}, Base minus Pretrained{left} ({SURE})."


def _by_labels(rows: pd.DataFrame) -> Iterator[str]:
    if rows.empty:
        yield "What emotions or topics add cannot be told: no such method is compared with Base."
        return
    better, worse = rows[_sure(rows) & _better(rows)], rows[_sure(rows) & ~_better(rows)]
    if better.empty and worse.empty:
        yield (
            "That emotion or topic supervision makes replies better or worse is not shown: no "
            f"difference to Base is told apart from none (of {len(rows)}, {SURE})."
        )
        return
    parts = [
        f"{len(some)} {'is' if len(some) == 1 else 'are'} significantly {what}: "
        f"{listed([_named(row) for row in surest(some)], MOST)}"
        for what, some in (("better", better), ("worse", worse))
        if len(some)
    ]
    yield (
        f"Of {len(rows)} differences to Base of methods with emotion or topic supervision, "
        f"{'; '.join(parts)} ({SURE})."
    )


def surest(rows: pd.DataFrame) -> Sequence[Row]:
    """Rows by q, the smallest first."""
    return records(rows.sort_values("q", kind="stable"))


def _named(row: Row) -> str:
    return f"{row['name']} in {_score(row)}"


def _score(row: Row) -> str:
    """A measure and its difference: ``P@1,100 (+6.3 [1.6, 11.0])``."""
    of_pool = f", {row['pool']}" if row["pool"] else ""
    interval = with_interval(row["difference"], row["low"], row["high"], "+.2f")
    return f"{row['score']}{of_pool} ({interval})"
