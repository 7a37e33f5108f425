"""Correlations with intervals over contexts and seeds, Williams' tests, averages, ceilings.

Contexts are drawn whole, since several responses share one; every rater of a set meets the same
draws (``stats.draws``). In a domain the panel's rating is that of the domain's own expert,
elsewhere the mean of all (section IV-D), and so it is for the collection.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.designs.panel import columns
from tasktransfer.designs.panel.sources.cards import RATED, TINY_RATED
from tasktransfer.metrics.measures import Values, kendall, pearson, spearman
from tasktransfer.results.study import Study
from tasktransfer.stats.bootstrap import (
    Confidence,
    Trainings,
    confidence,
    confidence_of_mean,
    estimate,
)
from tasktransfer.stats.clustered import (
    drawn_interval,
    paired_difference,
    reliability,
    spearman_draws,
    split_half,
    williams,
)
from tasktransfer.stats.draws import Units, dialogues, unit_weights
from tasktransfer.stats.false_discovery import false_discovery
from tasktransfer.stats.shares import wilson
from tasktransfer.tables.store import frame_of, read_frame, write_frame

Row = tuple[Any, ...]
FANS = ("panel", "collection")
"""Methods of one model a domain."""
COMPARED_WITH = ("single", "collection", "cosine-last")
CONTROLS = ("cosine-last", "cosine-whole", "cosine-max", "word-overlap", "length")
"""What nobody trained; the last two are read off the words."""
OWN_MINUS_OTHERS = "own - others"


def domain_of(rated: str) -> str:
    """The domain of a rated set; empty: none."""
    return {**RATED, **TINY_RATED}[rated].domain


@dataclass(frozen=True)
class Rated:
    """A rated set: human ratings and contexts in the order of its items, what each rater gave."""

    name: str
    items: list[str]
    gold: Values
    units: Units
    given: dict[tuple[str, str], dict[int, Values]]
    """(method, domain) → seed → ratings."""
    domains: tuple[str, ...]
    """Those that were trained on."""

    @cached_property
    def weights(self) -> Any:
        """How often each item is drawn, (draws, items)."""
        drawn = unit_weights("panel", self.name, self.units.count)
        return drawn[:, self.units.of_instance]

    @property
    def in_domain(self) -> bool:
        """Whether it is of a domain that was trained on."""
        return domain_of(self.name) in self.domains

    def by_method(self, method: str) -> dict[int, Values]:
        """Seed → a method's ratings; without the seeds that lack an expert which would rate."""
        if method not in FANS:
            return self.given[method, ""]
        raters = [domain_of(self.name)] if self.in_domain else self.domains
        experts = [self.given.get((method, domain), {}) for domain in raters]
        seeds = sorted(set.intersection(*(set(of) for of in experts)))
        return {seed: np.mean([of[seed] for of in experts], axis=0) for seed in seeds}

    @cached_property
    def methods(self) -> list[str]:
        """Those that rated it."""
        named = dict.fromkeys(method for method, _ in self.given)
        return [method for method in named if self.by_method(method)]

    def trainings(self, given: dict[int, Values]) -> Trainings:
        """The correlations of each seed's ratings, x 100, and those of drawn items."""
        scores = np.array([100 * spearman(values, self.gold) for values in given.values()])
        drawn = None
        if self.units.count > 1:
            drawn = np.stack(
                [100 * spearman_draws(values, self.gold, self.weights) for values in given.values()]
            )
        return Trainings(tuple(given), scores, drawn)


def make_statistics(study: Study) -> None:
    """Write the statistics' tables from the collected ones."""
    folder = Path(study.tables)
    frames = {}
    for name in ("ratings", "items", "few_shot", "choices"):
        frames[name], metadata = read_frame(
            folder / f"{name}.parquet", columns.TABLES[name], "collect again"
        )
    sets, domains = (metadata.order.get(kind, ()) for kind in ("set", "domain"))
    for name, frame in statistics(**frames, sets=sets, domains=domains).items():
        write_frame(folder / f"{name}.parquet", frame, columns.STATISTICS[name], metadata)


def statistics(
    ratings: pd.DataFrame,
    items: pd.DataFrame,
    few_shot: pd.DataFrame,
    choices: pd.DataFrame,
    sets: Sequence[str],
    domains: Sequence[str],
) -> dict[str, pd.DataFrame]:
    """Table → frame; ``sets`` and ``domains``: the study's, in its order."""
    rated = rated_sets(ratings, items, sets, tuple(domains))
    of_method = {
        (m, one.name): one.trainings(one.by_method(m)) for one in rated for m in one.methods
    }
    rows: dict[str, list[Row]] = {
        "correlations": _correlations(rated, of_method),
        "experts": list(_experts(rated)),
        "tests": _tests(rated, of_method),
        "averages": list(_averages(rated, of_method)),
        "few": list(_few(few_shot, rated)),
        "hits": list(_hits(choices)),
        "ceilings": list(_ceilings(items, rated)),
    }
    return {name: frame_of(some, columns.STATISTICS[name]) for name, some in rows.items()}


def rated_sets(
    ratings: pd.DataFrame, items: pd.DataFrame, order: Sequence[str], domains: tuple[str, ...]
) -> list[Rated]:
    """The rated sets of the tables."""
    by_set = {str(name): some for name, some in ratings.groupby("set", sort=False)}
    known = {str(name): some for name, some in items.groupby("set", sort=False)}
    sets = []
    for name in [n for n in dict.fromkeys([*order, *by_set]) if n in by_set]:
        own = known[name]
        places = {item: place for place, item in enumerate(own["item"])}
        given: dict[tuple[str, str], dict[int, Values]] = {}
        for (method, domain, seed), some in by_set[name].groupby(
            ["method", "domain", "seed"], sort=False
        ):
            values = np.full(len(own), np.nan)
            values[[places[item] for item in some["item"]]] = some["value"]
            given.setdefault((str(method), str(domain)), {})[int(str(seed))] = values
        for control, column in (("word-overlap", "overlap"), ("length", "response_words")):
            given[control, ""] = {0: own[column].to_numpy(float)}
        gold = own["gold"].to_numpy(float)
        units = dialogues(own["context"].tolist())
        sets.append(Rated(name, list(places), gold, units, given, domains))
    return sets


def _against_zero(trainings: Trainings, units: Units) -> tuple[float, Confidence]:
    """The mean correlation over seeds, and how sure it is."""
    drawn = units if trainings.resampled is not None else None
    sure = confidence_of_mean(trainings, drawn, least=-100)
    return float(trainings.scores.mean()), sure


def _correlations(sets: list[Rated], of_method: dict[tuple[str, str], Trainings]) -> list[Row]:
    rows: list[Row] = []
    for method in dict.fromkeys(method for method, _ in of_method):
        mine = [one for one in sets if (method, one.name) in of_method]
        sure = [_against_zero(of_method[method, one.name], one.units) for one in mine]
        q = false_discovery([c.p for _, c in sure])
        for one, (value, c), each in zip(mine, sure, q, strict=True):
            given = one.by_method(method)
            others = (
                float(np.mean([100 * of(values, one.gold) for values in given.values()]))
                for of in (pearson, kendall)
            )
            constant = sum(len({*values.tolist()}) == 1 for values in given.values())
            drawn = of_method[method, one.name].resampled
            ends = (None, None) if drawn is None else drawn_interval(drawn, method, one.name)
            rows.append(
                (
                    *(method, one.name, one.in_domain, domain_of(one.name), len(given)),
                    *(value, c.low, c.high, c.p, float(each), *ends, *others),
                    *(one.units.instances, one.units.count, constant),
                )
            )
    return rows


def _experts(sets: list[Rated]) -> Iterator[Row]:
    for one in sets:
        for method in (m for m in FANS if m in one.methods):
            each = {
                domain: one.trainings(given)
                for (name, domain), given in one.given.items()
                if name == method
            }
            home = domain_of(one.name)
            for domain, trainings in each.items():
                value, c = _against_zero(trainings, one.units)
                own = domain == home
                seeds = len(trainings.seeds)
                yield method, domain, one.name, own, seeds, value, c.low, c.high, c.p
            if home in each and len(each) > 1:
                others = _mean([t for domain, t in each.items() if domain != home])
                units = one.units if others.resampled is not None else None
                compared = estimate(each[home], others, units)
                c = confidence(compared)
                seeds = len(each[home].seeds)
                yield (
                    *(method, OWN_MINUS_OTHERS, one.name, True, seeds),
                    *(compared.delta, c.low, c.high, c.p),
                )


def _mean(several: list[Trainings]) -> Trainings:
    """The mean of several scores, seed by seed; of the seeds that all of them have."""
    seeds = [seed for seed in several[0].seeds if all(seed in one.seeds for one in several)]
    places = [[one.seeds.index(seed) for seed in seeds] for one in several]
    scores = [one.scores[at] for one, at in zip(several, places, strict=True)]
    drawn = [
        one.resampled[at]
        for one, at in zip(several, places, strict=True)
        if one.resampled is not None
    ]
    mean = np.mean(drawn, axis=0) if len(drawn) == len(several) else None
    return Trainings(tuple(seeds), np.mean(scores, axis=0), mean)


# --- tests --------------------------------------------------------------------------------------


def _tests(sets: list[Rated], of_method: dict[tuple[str, str], Trainings]) -> list[Row]:
    """Of ratings averaged over seeds, and per seed: the difference by drawing contexts, which
    claims rest on, and Williams' test, which knows none; and of the mean over seeds an interval
    over contexts and seeds."""
    rows: list[Row] = []
    methods = list(dict.fromkeys(method for method, _ in of_method))
    names = [name for name, _, _ in columns.TESTS]
    families = [(names.index(p), names.index(q)) for p, q in (("p", "q"), ("t_p", "t_q"))]
    for method in (m for m in methods if m not in CONTROLS):
        for against in (a for a in COMPARED_WITH if a in methods and a != method):
            tested: list[list[Any]] = []
            for one in sets:
                if {method, against} <= {*one.methods}:
                    tested += _compared(one, method, against, of_method)
            for seed in dict.fromkeys(row[3] for row in tested):
                some = [row for row in tested if row[3] == seed]
                for p, q in families:
                    for row, value in zip(some, false_discovery([r[p] for r in some]), strict=True):
                        row[q] = float(value)
            rows += [tuple(row) for row in tested]
    return rows


def _compared(
    one: Rated, method: str, against: str, of_method: dict[tuple[str, str], Trainings]
) -> Iterator[list[Any]]:
    first, second = one.by_method(method), one.by_method(against)
    mine, other = of_method[method, one.name], of_method[against, one.name]
    if against in CONTROLS:  # without a seed: it is the same beside every one
        second = dict.fromkeys(first, next(iter(second.values())))
        other = one.trainings(second)
    shared = [seed for seed in first if seed in second]
    compared = estimate(mine, other, one.units if one.units.count > 1 else None)
    c = confidence(compared)
    pairs: list[tuple[str, Values, Values]] = [(str(s), first[s], second[s]) for s in shared]
    mean = (np.mean(list(given.values()), axis=0) for given in (first, second))
    for seed, a, b in [("mean", *mean), *pairs]:
        r12, r13, r23 = spearman(a, one.gold), spearman(b, one.gold), spearman(a, b)
        *apart, p = paired_difference(a, b, one.gold, one.weights, one.units.count)
        t, t_p = williams(r12, r13, r23, len(one.gold))
        ends = (c.low, c.high) if seed == "mean" else (None, None)
        yield [
            *(method, against, one.name, seed, 100 * r12, 100 * r13, 100 * r23, len(one.gold)),
            *(100 * value for value in apart),
            *(p, math.nan, *ends, t, t_p, math.nan),
        ]


# --- averages -----------------------------------------------------------------------------------


def groups(sets: Iterable[tuple[str, bool]]) -> dict[str, list[str]]:
    """Average → its sets: a domain each, then in-domain, out-of-domain and all.

    Args:
        sets: (name, whether it is of a domain that was trained on).
    """
    named = list(sets)
    by: dict[str, list[str]] = {}
    for name, inside in named:
        if inside:
            by.setdefault(domain_of(name), []).append(name)
    by["in-domain"] = [name for name, inside in named if inside]
    by["out-of-domain"] = [name for name, inside in named if not inside]
    by["all"] = [name for name, _ in named]
    return {group: names for group, names in by.items() if names}


def _averages(sets: list[Rated], of_method: dict[tuple[str, str], Trainings]) -> Iterator[Row]:
    by = groups((one.name, one.in_domain) for one in sets)
    units = {one.name: one.units for one in sets}
    for method in dict.fromkeys(method for method, _ in of_method):
        for group, names in by.items():
            mine = [of_method[method, name] for name in names if (method, name) in of_method]
            mean = _mean(mine) if len(mine) == len(names) else None
            if mean is None or not mean.seeds:
                continue
            # As many contexts as the smallest set has: degrees of freedom on the safe side.
            smallest = min((units[name] for name in names), key=lambda one: one.count)
            value, c = _against_zero(mean, smallest)
            yield method, group, len(names), len(mean.seeds), value, c.low, c.high, c.p


# --- transfer, choices, ceilings ----------------------------------------------------------------


def _few(few_shot: pd.DataFrame, sets: list[Rated]) -> Iterator[Row]:
    by_name = {one.name: one for one in sets}
    for name in few_shot["set"].unique():
        for control in (c for c in CONTROLS if name in by_name and c in by_name[name].methods):
            value = _of_first_seed(by_name[name], control)
            yield control, name, "", 0, 1, value, math.nan, value, math.nan
    for (method, name, by), some in few_shot.groupby(["method", "set", "by"], sort=False):
        one = by_name.get(str(name))
        if one is not None and one.given.get((str(method), "")):
            # Before transfer: the checkpoint that it starts from.
            before = _of_first_seed(one, str(method))
            yield method, name, by, 0, 1, before, math.nan, before, math.nan
        for percent, draws in some.groupby("percent"):
            values: list[float] = []
            for column in ("all_items", "held_out"):
                values += [float(draws[column].mean()), float(draws[column].std())]
            yield method, name, by, int(str(percent)), len(draws), *values


def _of_first_seed(one: Rated, method: str) -> float:
    return 100 * spearman(next(iter(one.given[method, ""].values())), one.gold)


def _hits(choices: pd.DataFrame) -> Iterator[Row]:
    keys = ["method", "persona", "candidates"]
    for (method, persona, candidates), some in choices.groupby(keys, sort=False):
        low, high = wilson(float(some["right"].sum()), len(some))
        share = 100 * float(some["right"].mean())
        yield method, persona, int(str(candidates)), len(some), share, 100 * low, 100 * high


def _ceilings(items: pd.DataFrame, sets: list[Rated]) -> Iterator[Row]:
    for one in sets:
        name, some = one.name, items[items["set"] == one.name]
        ratings = [list(of) for of in some["ratings"]]
        agreement = split_half(ratings)
        reliable = reliability(ratings, agreement)
        there = {control: control in one.methods for control in CONTROLS}
        yield (
            *(name, len(some), some["context"].nunique()),
            float(np.mean([len(of) for of in ratings])),
            *(100 * agreement, 100 * reliable, 100 * math.sqrt(reliable)),
            *(_of_first_seed(one, c) if there[c] else math.nan for c in CONTROLS),
            *(float(some[c].mean()) for c in ("utterances", "context_words", "response_words")),
        )
