"""Correlations with intervals over contexts and seeds, Williams' tests, averages, ceilings.

Contexts are resampled as clusters, because several responses share a context. All raters of a set
have the same resamples (``stats.draws``). In a trained domain the panel's rating is that of the
domain's own expert, elsewhere the mean of all experts (section IV-D). The collection works in the
same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.designs.panel.frames import AVERAGES, EXPERTS, TESTS
from tasktransfer.designs.panel.names import (
    BROUGHT,
    COMPARED_WITH,
    CONTROLS,
    DOMAIN_METHODS,
    EXCHANGED,
    OF_CEILINGS,
    OTHERS,
    OWN_MINUS_OTHERS,
    get_domain,
    group_sets_by_average,
    has_domain_models,
)
from tasktransfer.metrics.measures import Values, compute_kendall, compute_pearson, compute_spearman
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import build_frame, cast_columns, order_names
from tasktransfer.stats.bootstrap import compute_q_values
from tasktransfer.stats.cells import (
    NO_SEED,
    Cell,
    Key,
    Scored,
    build_cell_table,
    compute_mean_cell,
    gather_cells,
    score_rank_correlation,
)
from tasktransfer.stats.clustered import (
    compare_raters,
    compute_percentile_interval,
    compute_reliability,
    compute_split_half_agreement,
    compute_williams_test,
)
from tasktransfer.stats.draws import Units, build_dialogue_units, sample_unit_weights
from tasktransfer.stats.shares import compute_wilson_interval

Line = tuple[Any, ...]


@dataclass(frozen=True)
class Rated:
    """A rated set: human ratings, contexts and the raters' ratings in the order of its items."""

    name: str
    items: list[str]
    gold: Values
    units: Units
    given: dict[tuple[str, str], dict[int, Values]]
    """(method, domain) → seed → ratings."""
    domains: tuple[str, ...]
    """The trained domains."""

    @cached_property
    def weights(self) -> Any:
        """Number of times that each item is resampled, shape (draws, items)."""
        drawn = sample_unit_weights("panel", self.name, self.units.count)
        return drawn[:, self.units.of_instance]

    @property
    def in_domain(self) -> bool:
        """True if the set belongs to a trained domain."""
        return get_domain(self.name) in self.domains

    def get_ratings(self, method: str) -> dict[int, Values]:
        """Return a method's ratings by seed, omitting seeds that lack a required expert."""
        if not has_domain_models(method):
            return self.given[method, ""]
        raters = [get_domain(self.name)] if self.in_domain else self.domains
        experts = [self.given.get((method, domain), {}) for domain in raters]
        seeds = sorted(set.intersection(*(set(of) for of in experts)))
        return {seed: np.mean([of[seed] for of in experts], axis=0) for seed in seeds}

    @cached_property
    def methods(self) -> list[str]:
        """The methods that rated the set."""
        named = dict.fromkeys(method for method, _ in self.given)
        return [method for method in named if self.get_ratings(method)]

    def compute_correlation(self, values: Values) -> Scored:
        """Return the correlation of ratings with the human ratings."""
        return score_rank_correlation(values, self.gold, self.units, self.weights)


def build_rated_sets(frames: Frames) -> list[Rated]:
    """Return the rated sets, in the study's order."""
    ratings, items, order = frames["ratings"], frames["items"], frames.metadata.order
    domains = tuple(order.get("domain", ()))
    by_set = {str(name): some for name, some in ratings.groupby("set", sort=False)}
    known = {str(name): some for name, some in items.groupby("set", sort=False)}
    sets = []
    for name in order_names(by_set, order.get("set", ())):
        own = known[name]
        places = {item: index for index, item in enumerate(own["item"])}
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
        units = build_dialogue_units(own["context"].tolist())
        sets.append(Rated(name, list(places), gold, units, given, domains))
    return sets


def list_untrained_methods(frames: Frames) -> tuple[str, ...]:
    """Return the methods that have one rating for all seeds: controls and the user's own raters."""
    return (*CONTROLS, *frames.metadata.order.get(BROUGHT, ()))


def estimate_correlations(frames: Frames) -> dict[Key, Cell]:
    """Return a mapping from (method, rated set) to the correlation with human ratings."""
    rated, once = frames.compute_once(build_rated_sets), list_untrained_methods(frames)
    return gather_cells(
        (
            (method, rated_set.name),
            NO_SEED if method in once else seed,
            rated_set.compute_correlation(values),
        )
        for method in dict.fromkeys(method for rated_set in rated for method in rated_set.methods)
        for rated_set in rated
        if method in rated_set.methods
        for seed, values in rated_set.get_ratings(method).items()
    )


def compare_methods(frames: Frames) -> pd.DataFrame:
    """Return each method's correlation on each rated set, and its differences from other methods.

    The user's own raters are compared with the same methods as ours, and every other method with
    them. Exchanged contexts are compared with the contexts of the same method.
    """
    brought = frames.metadata.order.get(BROUGHT, ())
    exchanged = [m for m in frames.metadata.order.get("method", ()) if m.endswith(EXCHANGED)]
    against = {method: {"method": method} for method in (*COMPARED_WITH, *brought, *exchanged)}
    table = build_cell_table(
        frames.compute_once(estimate_correlations),
        ["method", "set"],
        against,
        lambda key, against: None if against else key[0],
    )
    reverse = table["method"].isin([*COMPARED_WITH, *brought]) & table["against"].isin(brought)
    control = table["method"].isin(exchanged) & (table["against"] != "")
    other = table["against"].isin(exchanged) & (table["against"] != table["method"] + EXCHANGED)
    return table[~(reverse | control | other)]


def _index_rated_sets(frames: Frames) -> dict[str, Rated]:
    return {rated_set.name: rated_set for rated_set in frames.compute_once(build_rated_sets)}


# --- correlations -------------------------------------------------------------------------------


def make_correlations(frames: Frames) -> Iterator[Line]:
    """Yield the rows of the frame ``correlations``, one per method and rated set."""
    table, sets = frames.compute_once(compare_methods), _index_rated_sets(frames)
    estimated = frames.compute_once(estimate_correlations)
    own: Iterable[Any] = table[table["against"] == ""].itertuples()
    for row in own:
        rated_set = sets[row.set]
        given = rated_set.get_ratings(row.method)
        others = (
            float(np.mean([100 * of(values, rated_set.gold) for values in given.values()]))
            for of in (compute_pearson, compute_kendall)
        )
        constant = sum(len({*values.tolist()}) == 1 for values in given.values())
        drawn = estimated[row.method, rated_set.name].trainings.resampled
        assert drawn is not None
        domain = get_domain(rated_set.name)
        yield (
            *(row.method, rated_set.name, rated_set.in_domain, domain, row.seeds),
            *(row.value, row.low, row.high, row.p, row.q),
            *(*compute_percentile_interval(drawn, row.method, rated_set.name), *others),
            *(rated_set.units.instances, rated_set.units.count, constant),
        )


def make_experts(frames: Frames) -> pd.DataFrame:
    """Return the frame ``experts``: each expert's correlation on each set, with differences.

    A difference is the correlation of the set's own expert minus the others' mean.
    """
    estimated = gather_cells(
        ((method, domain, one.name), seed, one.compute_correlation(values))
        for one in frames.compute_once(build_rated_sets)
        for (method, domain), given in one.given.items()
        if method in DOMAIN_METHODS and method in one.methods
        for seed, values in given.items()
    )
    others: dict[Key, list[Cell]] = {}
    for (method, domain, name), cell in estimated.items():
        if domain != get_domain(name):
            others.setdefault((method, OTHERS, name), []).append(cell)
    means = {key: compute_mean_cell(several) for key, several in others.items()}
    names = ["method", "expert", "set"]
    table = build_cell_table(estimated, names, {OTHERS: {"expert": OTHERS}}, references=means)
    table["own"] = table["expert"] == table["set"].map(get_domain)
    compared = table["against"] == OTHERS
    table["expert"] = table["expert"].mask(compared, OWN_MINUS_OTHERS)
    return cast_columns(table[table["own"] | ~compared], EXPERTS)


# --- tests --------------------------------------------------------------------------------------


def make_tests(frames: Frames) -> pd.DataFrame:
    """Return the frame ``tests``, for ratings averaged over seeds and for each seed.

    It has the difference from resampling contexts, which the answer uses, and Williams' test, which
    ignores contexts. The mean over seeds also has an interval over contexts and seeds. Single seeds
    have no q, unless neither method was trained.
    """
    table, sets = frames.compute_once(compare_methods), _index_rated_sets(frames)
    untrained = list_untrained_methods(frames)
    compared = table[(table["against"] != "") & ~table["method"].isin(CONTROLS)]
    by = compared.groupby(["method", "against"], sort=False)
    pairs: Iterable[Any] = (pair for _, some in by for pair in some.itertuples())
    rows = [row for pair in pairs for row in _test_pair(sets[pair.set], pair, untrained)]
    frame = build_frame(rows, TESTS)
    names = ["method", "against", "set"]
    seeds = frame[names].merge(compared[[*names, "seeds"]], on=names, how="left")["seeds"]
    fixed = frame["method"].isin(untrained) & frame["against"].isin(untrained)
    several = (frame["seed"] == "mean") & ((seeds > 1) | fixed)
    for p, q in (("p", "q"), ("t_p", "t_q")):
        families = frame[p].where(several).groupby([frame["method"], frame["against"]], sort=False)
        frame[q] = families.transform(compute_q_values).where(several)
    return frame


def _test_pair(one: Rated, pair: Any, untrained: Sequence[str]) -> Iterator[Line]:
    """Yield the tests of a pair of methods, first for ratings averaged over seeds, then per seed.

    ``pair`` is the row of ``compare_methods`` with the interval over contexts and seeds.
    """
    first, second = one.get_ratings(pair.method), one.get_ratings(pair.against)
    if pair.against in untrained:  # has no seed, and is compared with every seed
        second = dict.fromkeys(first, next(iter(second.values())))
    elif pair.method in untrained:
        first = dict.fromkeys(second, next(iter(first.values())))
    shared = [seed for seed in first if seed in second]
    if not shared:
        return
    pairs: list[tuple[str, Values, Values]] = []
    if not {pair.method, pair.against} <= {*untrained}:
        pairs = [(str(s), first[s], second[s]) for s in shared]
    mean = (np.mean([given[s] for s in shared], axis=0) for given in (first, second))
    for seed, a, b in [("mean", *mean), *pairs]:
        r12, r13, r23 = (
            compute_spearman(a, one.gold),
            compute_spearman(b, one.gold),
            compute_spearman(a, b),
        )
        *apart, p = compare_raters(a, b, one.gold, one.weights, one.units.count)
        t, t_p = compute_williams_test(r12, r13, r23, len(one.gold))
        ends = (pair.low, pair.high) if seed == "mean" else (None, None)
        yield (
            *(pair.method, pair.against, one.name, seed),
            *(100 * r12, 100 * r13, 100 * r23, len(one.gold)),
            *(100 * value for value in apart),
            *(p, math.nan, *ends, t, t_p, math.nan),
        )


# --- averages -----------------------------------------------------------------------------------


def make_averages(frames: Frames) -> pd.DataFrame:
    """Return the frame ``averages``: mean correlations over groups of rated sets."""
    estimated = frames.compute_once(estimate_correlations)
    by = group_sets_by_average(
        (one.name, one.in_domain) for one in frames.compute_once(build_rated_sets)
    )
    means: dict[Key, Cell] = {
        (method, group): compute_mean_cell([estimated[method, name] for name in names])
        for method in dict.fromkeys(method for method, _ in estimated)
        for group, names in by.items()
        if all((method, name) in estimated for name in names)
    }
    means = {key: mean for key, mean in means.items() if mean.trainings.seeds}
    table = build_cell_table(means, ["method", "over"], {})
    table["sets"] = table["over"].map({group: len(names) for group, names in by.items()})
    return cast_columns(table, AVERAGES)


# --- transfer, choices, ceilings ----------------------------------------------------------------


def make_few_shot(frames: Frames) -> Iterator[Line]:
    """Yield the rows of the frame ``few`` (few-shot correlations), one per method and sample."""
    few_shot, sets = frames["few_shot"], _index_rated_sets(frames)
    for name in few_shot["set"].unique():
        for control in (c for c in CONTROLS if name in sets and c in sets[name].methods):
            value = _correlate_first_seed(sets[name], control)
            yield control, name, "", 0, 1, value, math.nan, value, math.nan
    for (method, name, by), some in few_shot.groupby(["method", "set", "by"], sort=False):
        rated_set = sets.get(str(name))
        if rated_set is not None and rated_set.given.get((str(method), "")):
            # Before transfer, the score is that of the initial checkpoint.
            before = _correlate_first_seed(rated_set, str(method))
            yield method, name, by, 0, 1, before, math.nan, before, math.nan
        for percent, draws in some.groupby("percent"):
            values: list[float] = []
            for column in ("all_items", "held_out"):
                values += [float(draws[column].mean()), float(draws[column].std())]
            yield method, name, by, int(str(percent)), len(draws), *values


def _correlate_first_seed(one: Rated, method: str) -> float:
    return 100 * compute_spearman(next(iter(one.given[method, ""].values())), one.gold)


def make_hits(frames: Frames) -> Iterator[Line]:
    """Yield the rows of the frame ``hits``, one per method, persona and number of candidates."""
    keys = ["method", "persona", "candidates"]
    for (method, persona, candidates), some in frames["choices"].groupby(keys, sort=False):
        low, high = compute_wilson_interval(float(some["right"].sum()), len(some))
        share = 100 * float(some["right"].mean())
        yield method, persona, int(str(candidates)), len(some), share, 100 * low, 100 * high


def make_ceilings(frames: Frames) -> Iterator[Line]:
    """Yield the rows of the frame ``ceilings`` (upper bounds of correlations), one per set."""
    items = frames["items"]
    for one in frames.compute_once(build_rated_sets):
        name, some = one.name, items[items["set"] == one.name]
        ratings = [list(of) for of in some["ratings"]]
        agreement = compute_split_half_agreement(ratings)
        reliable = compute_reliability(ratings, agreement)
        there = {control: control in one.methods for control in OF_CEILINGS}
        yield (
            *(name, len(some), some["context"].nunique()),
            float(np.mean([len(of) for of in ratings])),
            *(100 * agreement, 100 * reliable, 100 * math.sqrt(reliable)),
            *(_correlate_first_seed(one, c) if there[c] else math.nan for c in OF_CEILINGS),
            *(float(some[c].mean()) for c in ("utterances", "context_words", "response_words")),
        )
