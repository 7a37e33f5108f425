"""Declaration of the transfer design.

Imports of pandas and matplotlib are inside the functions that need them, because the Snakefile
imports this module.
"""

from __future__ import annotations

from collections import Counter

from tasktransfer.datasets import DATASETS
from tasktransfer.designs.design import Design
from tasktransfer.designs.transfer import commands
from tasktransfer.designs.transfer.algorithms import STAGE_KINDS
from tasktransfer.designs.transfer.challenge_rules import MEANING, OUT_OF_SCOPE
from tasktransfer.designs.transfer.choices import RacingConfig, count_transfers
from tasktransfer.designs.transfer.config import TransferConfig
from tasktransfer.designs.transfer.leaks import check_leaks
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.designs.transfer.shown import build_analysis
from tasktransfer.designs.transfer.study_plan import plan_study
from tasktransfer.selection.methods import SELECTORS

CHECK_NOTE = (
    "The study has check_baselines, so baselines are trained first. Transfers to targets whose "
    "baseline does not beat the references on dev are then left out."
)


def _list_notes(config: TransferConfig) -> tuple[str, ...]:
    """Return notes on the datasets, the challenge's rules, and rules that cannot be checked."""
    names = config.dataset_names
    notes = tuple(f"{name}: {line}" for name in names for line in DATASETS[name].notes)
    if config.racing is not None:
        notes = (*notes, _describe_race(config, config.racing))
    if config.checks_baselines:
        notes = (*notes, CHECK_NOTE)
    if config.rules != "challenge":
        return notes
    meanings = "; ".join(MEANING.values())
    return (*notes, f"The study has rules: challenge, which require: {meanings}.", OUT_OF_SCOPE)


def _describe_race(config: TransferConfig, racing: RacingConfig) -> str:
    """Return a sentence that compares the numbers of transfers with and without racing."""
    sources = Counter((d.name, target) for d in config.datasets for _, target in d.pairs)
    times = len(config.trained_models) * sum(name != BASELINE for name in config.planned_algorithms)
    with_race = times * count_transfers(racing, sources.values())
    without = times * racing.seeds[-1] * sum(sources.values())
    return (
        f"With racing, the study trains {with_race:,} single-source transfers instead of "
        f"{without:,} ({100 * with_race / without:.0f} %)."
    )


TRANSFER = Design(
    name="transfer",
    config=TransferConfig,
    kinds=STAGE_KINDS,
    grows_with=("seeds", "baseline_seeds", "models"),
    plan=plan_study,
    analysis=build_analysis,
    choose=commands.make_choice,
    # A study with rules: free cannot be submitted to the challenge.
    facts=lambda config: {"rules": config.rules},
    notes=_list_notes,
    refuse=check_leaks,
    warnings=commands.list_warnings,
    advice=commands.recommend_methods,
    rules=("submission.smk",),
    selectors=SELECTORS,
)
