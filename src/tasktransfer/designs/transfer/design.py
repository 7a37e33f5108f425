"""Declaration of the transfer design.

Imports of pandas and matplotlib are inside the functions that need them, because the Snakefile
imports this module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tasktransfer.datasets import DATASETS
from tasktransfer.designs.design import Design, Outputs
from tasktransfer.designs.transfer import commands, outputs
from tasktransfer.designs.transfer.algorithms import STAGE_KINDS
from tasktransfer.designs.transfer.challenge.rules import MEANING, OUT_OF_SCOPE
from tasktransfer.designs.transfer.config import TransferConfig, transfer_config
from tasktransfer.designs.transfer.leaks import refuse_leaks
from tasktransfer.designs.transfer.plan import plan
from tasktransfer.designs.transfer.racing import RacingConfig, runs_with_race
from tasktransfer.designs.transfer.runs import BASELINE, is_reference
from tasktransfer.designs.transfer.shown import counts_dialogues, shown
from tasktransfer.results.study import Study
from tasktransfer.selection.methods import SELECTORS


def _build_outputs(study: Study) -> Outputs:
    counted = counts_dialogues(study, outputs.DATA_FILES)
    referred = not _has_references(study) and counts_dialogues(study, (outputs.REFERENCE,))
    return Outputs(
        tables=_list_parquet_files(outputs.COLLECTED),
        statistics=_list_parquet_files(_list_statistics(study)),
        data_tables=outputs.DATA_FILES if counted else (),
        reference=outputs.REFERENCE if referred else "",
    )


def _list_statistics(study: Study) -> tuple[str, ...]:
    config = transfer_config(study)
    asked = outputs.PROMPTED if config.prompted else ()
    simple = outputs.REFERENCES if _has_references(study) else ()
    controlled = outputs.CONTROL_SUMMARY if config.planned_controls else ()
    more = outputs.SELECTION if config.selectors else ()
    race = (outputs.RACE,) if config.racing else ()
    mixed = (outputs.MIXING,) if config.multi_source.mixes else ()
    return (*outputs.STATISTICS, *asked, *simple, *controlled, *more, *race, *mixed)


def _has_references(study: Study) -> bool:
    return any(map(is_reference, study.plan.runs))


def _list_parquet_files(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"tables/{name}.parquet" for name in names)


def _list_notes(config: TransferConfig) -> tuple[str, ...]:
    """Return notes on the datasets, the challenge's rules, and rules that cannot be checked."""
    names = config.dataset_names
    notes = tuple(f"{name}: {line}" for name in names for line in DATASETS[name].told)
    if config.racing is not None:
        notes = (*notes, _describe_race(config, config.racing))
    if config.rules != "challenge":
        return notes
    return (*notes, f"rules: challenge: {'; '.join(MEANING.values())}", OUT_OF_SCOPE)


def _describe_race(config: TransferConfig, racing: RacingConfig) -> str:
    """Return a line with the number of transfers with and without the race."""
    sources = Counter((d.name, target) for d in config.datasets for _, target in d.pairs)
    times = len(config.trained_models) * sum(name != BASELINE for name in config.planned_algorithms)
    with_race = times * runs_with_race(racing, sources.values())
    without = times * racing.seeds[-1] * sum(sources.values())
    return (
        f"racing: {with_race:,} single-source transfers in place of {without:,} "
        f"({100 * with_race / without:.0f} %)"
    )


TRANSFER = Design(
    name="transfer",
    config=TransferConfig,
    kinds=STAGE_KINDS,
    grows_with=("seeds", "baseline_seeds", "models"),
    plan=plan,
    outputs=_build_outputs,
    collect=commands.collect,
    statistics=commands.statistics,
    shown=shown,
    choose=commands.choose,
    # Records of a free study cannot be submitted to the challenge.
    facts=lambda config: {"rules": config.rules},
    notes=_list_notes,
    refuse=refuse_leaks,
    warnings=commands.warn_unlearned,
    rules=("submission.smk",),
    selectors=SELECTORS,
    tables_version=outputs.TABLES_VERSION,
    of_dialogues=(
        *outputs.DATA_FILES,
        outputs.REFERENCE,
    ),
)
