"""Check intervals and significance marks in simulated studies with known effects.

    python benchmarks/statistics_simulation.py PART [STUDIES [DIALOGUES [FIRST]]]

PART is one of

    dialogues   dialogues of 1 to 60 correlated instances: coverage of the 95 % interval (target:
                93 to 97 %) and p <= 0.05 without an effect (target: at most 6 %), resampling
                whole dialogues, and resampling single instances; DIALOGUES per test set (40),
                starting with regime number FIRST
    few         12 to 40 dialogues with 1 to 60 instances, or of skewed sizes: coverage of scores
                and of deltas (target: 93 to 97 %)
    rules       the interval's rule compared with Welch and Satterthwaite's: coverage, width, and
                frequency of p below 0.05, 0.01 and 0.001 without an effect
    one_seed    the same test without variation between seeds, and one seed per cell
    baselines   20 baseline seeds compared with 5
    top1        mean of top1_heldout without an effect, and coverage of 0 by its intervals, if the
                test dialogues cause an error, shared by all seeds, of 0 to 1 standard deviations
                of a run
    heatmaps    fraction of cells that are marked, and fraction of false marks
    verdicts    verdicts on cells compared with controls that have none, half or all of their
                gain: false "beats all controls" (target: at most 5 %)

docs/analysis.md contains the tables of a run and its arguments.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from simulated_controls import KINDS, Kind
from simulated_controls import verdicts as judged_cells
from simulated_studies import (
    DIALOGUES,
    REGIMES,
    Judge,
    Regime,
    heatmap,
    studies,
    top1_target,
    true_delta,
    welch_satterthwaite,
)
from tasktransfer.designs.transfer.statistics.cells import MARKED
from tasktransfer.designs.transfer.statistics.controls import BEATS, EXPLAINED
from tasktransfer.stats.bootstrap import (
    Confidence,
    Estimate,
    compute_confidences,
    compute_mean_confidence,
    compute_q_values,
)
from tasktransfer.stats.chosen import compute_heldout_deltas, simulate_half_width

TASKS = 10
SOURCES = 6
"""Number of sources per target that are compared with controls."""
COUNTS = (40, 200)
"""Numbers of dialogues per test set: dialogue_nli has 40, character_identification 195."""


def dialogues(count: int = 4000, number: int = 40, first: int = 0) -> None:
    """Compare resampling of whole dialogues (``number`` per test set) and of single instances.

    Single instances are resampled only in the first studies, since 6,000 instances take 100 times
    as long as 200 dialogues. ``first``: index of the first regime.
    """
    print("dialogues | correlation | regime | covered, old draw -> dialogues | p <= 0.05 without")
    old = count // 8 if number < 100 else count // 20
    for place, regime in list(enumerate(DIALOGUES))[first:]:
        began, sized = time.perf_counter(), replace(regime, dialogues=number)
        chance = np.random.default_rng([1, number, place])
        planted = _judge_both_draws(sized, count, old, chance)
        nothing = _judge_both_draws(replace(sized, gain=0.0), count, old, chance)
        covered = [f"{_compute_coverage(sure, 100 * sized.gain):.1f}" for sure in planted]
        small = [f"{_compute_rate_below(sure):.1f}" for sure in nothing]
        print(
            f"{number} | {regime.correlation:g} | {regime.name} | {' -> '.join(covered)} | "
            f"{' -> '.join(small)}   ({old} and {count} studies, "
            f"{time.perf_counter() - began:.0f} s)",
            flush=True,
        )


def _judge_both_draws(
    regime: Regime, count: int, old: int, chance: np.random.Generator
) -> tuple[list[Confidence], list[Confidence]]:
    """Return the results of the first ``old`` studies by instance, and of all by dialogue."""
    by_instance, by_dialogue = Judge(regime, by_instance=True), Judge(regime)
    estimates: tuple[list[Estimate], list[Estimate]] = ([], [])
    for place, study in enumerate(studies(regime, count, chance)):
        if place < old:
            estimates[0].append(by_instance(study))
        estimates[1].append(by_dialogue(study))
    return compute_confidences(estimates[0]), compute_confidences(estimates[1])


def rules(count: int = 20_000) -> None:
    """Compare the interval in use with Welch and Satterthwaite's."""
    print("regime | rule | covered | median width | p <= 0.05, 0.01, 0.001 without effect")
    of_dialogues = [
        replace(regime, dialogues=40, name=f"{regime.name}, 40 dialogues{seeds}", seeds=number)
        for regime in DIALOGUES
        if regime.correlation == 0.05
        for seeds, number in (("", 5), (", 3 seeds", 3), (", 2 seeds", 2))
    ]
    for place, regime in enumerate((*of_dialogues, *REGIMES)):
        began = time.perf_counter()
        # Macro-F1 and large test sets are slower, so they get fewer studies.
        some = count if regime in of_dialogues else count // 10
        chance = np.random.default_rng([2, place])
        true, judge = true_delta(regime, chance), Judge(regime)
        planted = [judge(study) for study in studies(regime, some, chance)]
        without = studies(replace(regime, gain=0.0), some, chance)
        nothing = [judge(study) for study in without]
        for name, rule in (("w^1.5", compute_confidences), ("Welch", welch_satterthwaite)):
            sure, null = rule(planted), rule(nothing)
            width = np.median([one.high - one.low for one in sure])
            small = ", ".join(
                f"{_compute_rate_below(null, level):.2f}" for level in (0.05, 0.01, 0.001)
            )
            covered = _compute_coverage(sure, true)
            print(
                f"{regime.name} | {name} | {covered:.1f} | {width:.2f} | {small}"
                f"   ({some} studies, {time.perf_counter() - began:.0f} s)",
                flush=True,
            )


def few(count: int = 600) -> None:
    """Print the coverage of baseline scores and deltas with few dialogues and five seeds."""
    print("dialogues | sizes | correlation | score | what varies | score covered | delta covered")
    cases = [
        (number, skewed, regime, level)
        for number in (12, 20, 40)
        for skewed in (False, True)
        for regime in DIALOGUES[3:]
        for level in (0.55, 0.85)
        if regime.name != "seeds dominate"
    ]
    for place, (number, skewed, regime, level) in enumerate(cases):
        sized = replace(regime, dialogues=number, skewed=skewed, level=level)
        judge, chance = Judge(sized), np.random.default_rng([8, place])
        scores, deltas = [], []
        for study in studies(sized, count, chance):
            alone = judge.trained(study.test, study.baseline)
            scores.append(compute_mean_confidence(alone, judge.units(study.test)))
            deltas.append(judge(study))
        of_scores = _compute_coverage(scores, 100 * level)
        of_deltas = _compute_coverage(compute_confidences(deltas), 100 * regime.gain)
        print(
            f"{number} | {'skewed' if skewed else '1 to 60'} | {regime.correlation:g} | "
            f"{100 * level:g} | {regime.name} | {of_scores:.1f} | {of_deltas:.1f}   "
            f"({count} studies)",
            flush=True,
        )


def one_seed(count: int = 2000) -> None:
    """Test cells with one seed, if only dialogues cause variance and training does not."""
    print("dialogues | correlation | p <= 0.05 without effect, old draw -> dialogues")
    for number in COUNTS:
        for correlation in (0.0, 0.05, 0.2):
            regime = Regime("one", 0.0, 1.0, seeds=1, gain=0.0, longest=60)
            regime = replace(regime, dialogues=number, correlation=correlation)
            chance = np.random.default_rng([3, number, int(100 * correlation)])
            old = count // 2 if number == COUNTS[0] else count // 8
            small = [
                f"{_compute_rate_below(sure):.1f}"
                for sure in _judge_both_draws(regime, count, old, chance)
            ]
            print(
                f"{number} | {correlation:g} | {' -> '.join(small)}   ({old} and {count} studies)",
                flush=True,
            )


def baselines(count: int = 2000) -> None:
    """Compare intervals with more baseline seeds than runs."""
    print("regime | pairing | covered with 5, 20 | median width, 20 / 5 | p <= 0.05 with 20")
    for place, regime in enumerate(DIALOGUES[3:6]):
        for pairing in (0.0, 0.5):
            sized = replace(regime, dialogues=200, pairing=pairing)
            chance = np.random.default_rng([4, place, int(10 * pairing)])
            judge, sure, null = Judge(sized), {}, {}
            for number in (5, 20):
                more = replace(sized, baselines=number)
                sure[number] = compute_confidences(
                    [judge(one) for one in studies(more, count, chance)]
                )
                without = studies(replace(more, gain=0.0), count, chance)
                null[number] = compute_confidences([judge(one) for one in without])
            widths = {
                number: np.median([one.high - one.low for one in those])
                for number, those in sure.items()
            }
            covered = ", ".join(
                f"{_compute_coverage(sure[n], 100 * sized.gain):.1f}" for n in (5, 20)
            )
            print(
                f"{regime.name} | {pairing:g} | {covered} | {widths[20] / widths[5]:.2f} | "
                f"{_compute_rate_below(null[20]):.1f}   ({count} studies)",
                flush=True,
            )


def heatmaps(count: int = 200) -> None:
    """Print the marks in heatmaps of 10 tasks, without and with effects."""
    print("regime | effects | marked | heatmaps with a false mark | false of the marked, mean")
    regimes = [replace(one, dialogues=40) for one in DIALOGUES if one.correlation > 0]
    for place, regime in enumerate(regimes):
        for helpful in (0, 3):
            began = time.perf_counter()
            chance = np.random.default_rng([5, place, helpful])
            p = [heatmap(regime, TASKS, chance, helpful=helpful) for _ in range(count)]
            q = np.array([compute_q_values(one.ravel()).reshape(one.shape) for one in p])
            marked, wrong = q <= MARKED, (q <= MARKED)[:, :, helpful:]
            share = wrong.sum(axis=(1, 2)) / np.maximum(1, marked.sum(axis=(1, 2)))
            print(
                f"{regime.name}, correlation {regime.correlation:g} | {helpful} of 9 sources | "
                f"{100 * marked.mean():.2f} | {100 * wrong.any(axis=(1, 2)).mean():.1f} | "
                f"{100 * share.mean():.1f}   ({count} heatmaps, "
                f"{time.perf_counter() - began:.0f} s)",
                flush=True,
            )


def verdicts(count: int = 60) -> None:
    """Print the controls' verdicts on each kind of cell, in heatmaps of one kind and of all."""
    print("regime, gain | cells | heatmaps of these alone: beats all, explained | of all kinds")
    regimes = [replace(one, dialogues=40) for one in DIALOGUES if one.correlation == 0.05]
    for place, regime in enumerate(regimes):
        for gain in (0.05, 0.15):
            sized, chance = replace(regime, gain=gain), np.random.default_rng([7, place])
            alone = [
                said
                for kind in KINDS
                for _ in range(count)
                for said in judged_cells(sized, [kind] * len(KINDS), SOURCES, chance)
            ]
            mixed = [
                said for _ in range(count) for said in judged_cells(sized, KINDS, SOURCES, chance)
            ]
            for kind in KINDS:
                told = (
                    f"{_format_share(said, kind, BEATS)}, {_format_share(said, kind, EXPLAINED)}"
                    for said in (alone, mixed)
                )
                print(f"{regime.name}, {100 * gain:g} | {kind.name} | {' | '.join(told)}")
            print(f"   ({len(alone)} and {len(mixed)} cells)", flush=True)


def _format_share(judged: Sequence[tuple[Kind, str]], kind: Kind, verdict: str) -> str:
    """Return the percentage of a kind's cells that got the verdict."""
    mine = [said for one, said in judged if one == kind]
    return f"{100 * mine.count(verdict) / len(mine):.1f}"


def top1(count: int = 1500) -> None:
    """Print held-out top-1 without an effect, with an error of the dialogues in all seeds."""
    print("sources, targets, seeds | luck of the dialogues | mean, its error | hold 0")
    for sources, targets, seeds in ((9, 10, 5), (6, 7, 5), (2, 3, 5), (9, 10, 3)):
        for luck in (0.0, 0.25, 0.5, 1.0):
            chance = np.random.default_rng([6, sources, targets, seeds, int(100 * luck)])
            means, held = [], []
            for _ in range(count):
                study = [top1_target(sources, seeds, luck, chance) for _ in range(targets)]
                means.append(np.mean([compute_heldout_deltas(one.halves).mean() for one in study]))
                held.append(abs(means[-1]) <= simulate_half_width(study, chance, 400))
            print(
                f"{sources}, {targets}, {seeds} | {luck:g} | {np.mean(means):+.3f}, "
                f"{np.std(means) / count**0.5:.3f} | {100 * np.mean(held):.1f}   ({count} studies)",
                flush=True,
            )


def _compute_coverage(sure: Sequence[Confidence], true: float) -> float:
    """Return the percentage of intervals that contain the true effect."""
    return 100 * float(np.mean([one.low <= true <= one.high for one in sure]))


def _compute_rate_below(sure: Sequence[Confidence], level: float = 0.05) -> float:
    """Return the percentage of p values that are at most this level."""
    return 100 * float(np.mean([one.p <= level for one in sure]))


PARTS = {
    part.__name__: part
    for part in (dialogues, few, rules, one_seed, baselines, heatmaps, verdicts, top1)
}

if __name__ == "__main__":
    part, *numbers = sys.argv[1:]
    PARTS[part](*map(int, numbers))
