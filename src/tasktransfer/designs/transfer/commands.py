"""Commands of a transfer study: collect, choose and statistics.

Heavy imports are inside the functions, because the Snakefile imports this module.
"""

from __future__ import annotations

import time
from pathlib import Path

from tasktransfer.designs.transfer.config import transfer_config
from tasktransfer.designs.transfer.plan import build
from tasktransfer.designs.transfer.runs import is_reference, transfer_runs
from tasktransfer.designs.transfer.selection import SELECTION
from tasktransfer.errors import ConfigError
from tasktransfer.results.study import Study


def collect(study: Study, complete: bool) -> None:
    """Write the Parquet tables from the available records."""
    from tasktransfer.designs.transfer.collect.collect import collect as collect_tables

    collect_tables(study, complete=complete)


def choose(study: Study, name: str) -> None:
    """Make the named selection: the pairs that continue in a race, or the multi-source runs."""
    if name == SELECTION:
        select_sources(study, name)
    else:
        end_round(study, name)


def end_round(study: Study, name: str) -> None:
    """Select the pairs that continue in a race by the dev scores of all its runs so far."""
    from tasktransfer.designs.transfer.collect.collect import tables_of
    from tasktransfer.designs.transfer.racing import choice_name, read_race
    from tasktransfer.designs.transfer.statistics.race import pairs_that_go_on
    from tasktransfer.results.choices import write_choice
    from tasktransfer.results.collect import gather

    config = transfer_config(study)
    assert config.racing is not None
    race = read_race(config.racing, config.seeds, config.results)
    number = next(n for n in range(1, len(race.seeds)) if choice_name(n) == name)
    so_far = race.before(number - 1)
    planned = build(config, study.revisions, race=so_far)
    collected = gather(study, transfer_runs(planned))
    collected.require(complete=True)
    kept = pairs_that_go_on(tables_of(collected), so_far, config.racing.keep[number - 1])
    write_choice(study.config.results, name, kept)
    print(f"{name}: {len(kept)} pairs continue to {config.racing.seeds[number]} seeds")


def select_sources(study: Study, name: str) -> None:
    """Pick the multi-source targets and their sources from the single-source results.

    Raises:
        RecordError: a run that the selection depends on is missing, or the selector has too few
            values.
    """
    from tasktransfer.designs.transfer.collect.collect import tables_of
    from tasktransfer.designs.transfer.collect.results import frames_of
    from tasktransfer.designs.transfer.selectors import values_to_choose_by
    from tasktransfer.results.choices import write_choice
    from tasktransfer.results.collect import gather
    from tasktransfer.selection.choose import select_from_tables

    config = transfer_config(study)
    asked = config.multi_source
    single_source = build(config, study.revisions)
    collected = gather(study, transfer_runs(single_source))
    collected.require(complete=False)
    tables, values = tables_of(collected), None
    if asked.choose_by in config.selectors:
        values = values_to_choose_by(study, single_source.runs, tables)
    chosen = select_from_tables(
        frames_of(tables),
        asked.targets_per_dataset,
        asked.sources_per_target,
        asked.choose_by,
        values,
    )
    write_choice(study.config.results, name, chosen)
    for item in chosen:
        print(f"{item['dataset']}: {' + '.join(item['sources'])} -> {item['target']}")


def statistics(study: Study) -> None:
    """Compute intervals, tests, ranks, variance components and agreement of the collected runs."""
    from tasktransfer.designs.transfer.collect.results import read_tables
    from tasktransfer.designs.transfer.racing import read_race
    from tasktransfer.designs.transfer.statistics.race import RACE, race_table
    from tasktransfer.designs.transfer.statistics.study_statistics import compute
    from tasktransfer.results.store import write_frame

    tables = Path(study.tables)
    start = time.perf_counter()
    config = transfer_config(study)
    racing = config.racing
    race = None if racing is None else read_race(racing, config.seeds, config.results)
    frames = compute(
        tables, config.results, progress=lambda text: print(text, flush=True), race=race
    )
    if race is not None:
        collected, metadata = read_tables(tables)
        write_frame(tables / "race.parquet", race_table(collected.deltas, race), RACE, metadata)
    for name, frame in vars(frames).items():
        print(f"{tables / name}.parquet: {len(frame):,} rows")
    if config.multi_source.mixes:
        from tasktransfer.designs.transfer.statistics.mixing import write_mixing

        write_mixing(study, read_tables(tables)[1])
    if transfer_config(study).prompted:
        from tasktransfer.designs.transfer.statistics.prompted import write_prompted

        write_prompted(study)
    if any(map(is_reference, study.plan.runs)):
        from tasktransfer.designs.transfer.statistics.references import write_references

        write_references(study)
    if config.planned_controls:
        from tasktransfer.designs.transfer.statistics.control_summary import write_control_summary

        write_control_summary(study)
    if transfer_config(study).selectors:
        from tasktransfer.designs.transfer.selectors import write_selection

        write_selection(study)
    print(f"{time.perf_counter() - start:.1f} seconds")


def warn_unlearned(study: Study) -> list[str]:
    """Return a warning if baselines of a finished study do not beat a simple reference."""
    from tasktransfer.core.references import LEARNED
    from tasktransfer.designs.transfer.collect.results import read_references
    from tasktransfer.designs.transfer.report.learned import describe_unlearned

    table = read_references(study)
    if table is None:
        return []
    best = table[table["is_best"]]
    return [*describe_unlearned(best)] if (best["state"] != LEARNED).any() else []


def submission_records(study: Study, dataset: str, model: str) -> list[str]:
    """Return the records of all runs of a dataset and model that may be submitted.

    Raises:
        ConfigError: the study has ``rules: free`` and cannot be submitted.
    """
    if transfer_config(study).rules != "challenge":
        raise ConfigError(
            f"{study.config_file}: a free study has no submission: set rules: challenge"
        )
    submitted = {stage.digest for run in transfer_runs(study.plan) for stage in run.stages}
    stages = [stage for stage in study.plan.stages if stage.digest in submitted]
    return [study.record(s) for s in stages if (s.dataset, s.model.name) == (dataset, model)]
