"""Commands of a transfer study that its design adds to the common ones.

Heavy imports are inside the functions, because the Snakefile imports this module.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tasktransfer.core.plan import Plan
from tasktransfer.designs.transfer.choices import (
    LEARNED_TARGETS,
    SELECTION,
    describe_skipped_targets,
    group_targets_by_dataset,
    list_learned_targets,
    read_checked_targets,
)
from tasktransfer.designs.transfer.config import get_transfer_config
from tasktransfer.designs.transfer.frames import ABOUT, FRAMES, compares_methods
from tasktransfer.designs.transfer.plan import build_plan
from tasktransfer.designs.transfer.runs import (
    BASELINE,
    is_reference,
    is_transfer,
    select_transfer_runs,
)
from tasktransfer.results.study import Study

if TYPE_CHECKING:
    from tasktransfer.results.frames import Frames


def make_choice(study: Study, name: str) -> None:
    """Make a choice that extends the plan: learned targets, racing pairs or multi-source runs.

    The choice is written to the study's results, and the plan is extended by it.
    """
    if name == SELECTION:
        select_sources(study, name)
    elif name == LEARNED_TARGETS:
        check_baselines(study, name)
    else:
        end_racing_round(study, name)


def check_baselines(study: Study, name: str) -> None:
    """Choose and store the targets whose baselines beat the references on the dev split.

    Raises:
        RecordError: a baseline or a reference is missing.
    """
    from tasktransfer.designs.transfer.statistics.choices import (
        compare_baselines_with_references,
    )
    from tasktransfer.results.collect import gather_records
    from tasktransfer.results.planned_study import write_choice

    targets = group_targets_by_dataset(get_transfer_config(study))
    after = {node.digest for node in study.get_choice(name).after}
    read = [run for run in study.plan.runs if all(node.digest in after for node in run.judged)]
    collected = gather_records(study, read)
    collected.check_completeness(complete=True)
    checked = compare_baselines_with_references(collected, targets)
    write_choice(study.config.results, name, checked)
    for line in describe_skipped_targets(checked):
        print(line)


def end_racing_round(study: Study, name: str) -> None:
    """Choose the pairs that continue in a race, by the dev scores of all their runs so far."""
    from tasktransfer.designs.transfer.choices import format_choice_name, read_race
    from tasktransfer.designs.transfer.statistics.deltas import choose_continuing_pairs
    from tasktransfer.results.planned_study import write_choice

    config = get_transfer_config(study)
    race = read_race(config.racing, config.seeds, config.results)
    assert config.racing is not None and race is not None
    number = next(n for n in range(1, len(race.seeds)) if format_choice_name(n) == name)
    so_far = race.rewind(number - 1)
    checked = read_checked_targets(config.results) if config.checks_baselines else None
    learned = None if checked is None else list_learned_targets(checked)
    planned = build_plan(config, study.revisions, race=so_far, learned=learned)
    frames = _compute_frames(study, planned, complete=True)
    share = config.racing.keep[number - 1]
    kept = choose_continuing_pairs(frames["deltas"], frames["transfer_runs"], so_far, share)
    write_choice(study.config.results, name, kept)
    print(
        f"{name}: The next round trains {len(kept)} pairs with "
        f"{config.racing.seeds[number]} seeds in all."
    )


def select_sources(study: Study, name: str) -> None:
    """Choose multi-source targets and their sources from the single-source results.

    Raises:
        RecordError: a run that the selection depends on is missing, or the selector has too few
            values.
    """
    from tasktransfer.designs.transfer.statistics.choices import compute_chooser_values
    from tasktransfer.results.planned_study import write_choice
    from tasktransfer.selection.choose import select_sources_from_tables

    config = get_transfer_config(study)
    section = config.multi_source
    single_source = build_plan(config, study.revisions)
    frames, values = _compute_frames(study, single_source, complete=False), None
    if section.choose_by in config.selectors:
        values = compute_chooser_values(single_source.runs, frames)
    chosen = select_sources_from_tables(
        frames,
        section.targets_per_dataset,
        section.sources_per_target,
        section.choose_by,
        values,
    )
    write_choice(study.config.results, name, chosen)
    for item in chosen:
        print(f"{item['dataset']}: {' + '.join(item['sources'])} -> {item['target']}")


def _compute_frames(study: Study, planned: Plan, *, complete: bool) -> Frames:
    """Compute the frames of a plan's transfer runs from the current records."""
    from tasktransfer.designs.transfer.collect import build_study_metadata
    from tasktransfer.results.collect import gather_records
    from tasktransfer.results.frame_files import compute_frames

    collected = gather_records(study, select_transfer_runs(planned))
    collected.check_completeness(complete=complete)
    return compute_frames(collected, FRAMES, build_study_metadata(collected), ABOUT)


def list_warnings(study: Study) -> list[str]:
    """Return a finished study's warnings about truncated inputs and baselines."""
    from tasktransfer.designs.transfer.collect import list_truncation_notes

    return [*list_truncation_notes(study), *list_baseline_warnings(study)]


def list_baseline_warnings(study: Study) -> list[str]:
    """Return a finished study's warnings about baselines that have not learned.

    Empty if all of them have, or if the study has no references.
    """
    from tasktransfer.core.references import LEARNED
    from tasktransfer.designs.transfer.report.advice import select_transfer_targets
    from tasktransfer.designs.transfer.report.learned import (
        describe_better_baselines,
        describe_unlearned_baselines,
    )
    from tasktransfer.results.frame_files import read_frames

    written = Path(study.tables, "references.parquet").is_file()
    if not written or not any(map(is_reference, study.plan.runs)):
        return []
    references = read_frames(study, FRAMES, ABOUT)["references"]
    best = select_transfer_targets(references[references["is_best"]], study)
    if (best["state"] == LEARNED).all():
        return []
    has_sources = any(is_transfer(run) and run.method != BASELINE for run in study.plan.runs)
    return [
        *describe_unlearned_baselines(best, has_sources=has_sources),
        *describe_better_baselines(best),
    ]


def recommend_methods(study: Study) -> list[str]:
    """Return sentences that recommend a method for each of the user's own tasks.

    Empty for a study that compares no methods.
    """
    from tasktransfer.designs.transfer.report.advice import describe_methods, select_own_targets
    from tasktransfer.results.frame_files import read_frames

    if not Path(study.tables, "methods.parquet").is_file() or not compares_methods(study):
        return []
    return [*describe_methods(select_own_targets(read_frames(study, FRAMES, ABOUT)))]
