"""The transfer study as a design.

Imports of pandas and matplotlib stay in the functions that need them: the Snakefile imports this.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tasktransfer.datasets import DATASETS, task_of
from tasktransfer.designs.design import Design, Outputs, Shown
from tasktransfer.designs.transfer import commands, outputs
from tasktransfer.designs.transfer.algorithms import STAGE_KINDS
from tasktransfer.designs.transfer.challenge.rules import MEANING, OUT_OF_SCOPE
from tasktransfer.designs.transfer.config import TransferConfig, transfer_config
from tasktransfer.designs.transfer.controls import SHUFFLED_SOURCE
from tasktransfer.designs.transfer.leaks import refuse_leaks
from tasktransfer.designs.transfer.pairs import is_foreign
from tasktransfer.designs.transfer.plan import plan
from tasktransfer.designs.transfer.racing import RacingConfig, runs_with_race
from tasktransfer.designs.transfer.runs import BASELINE, transfer_runs
from tasktransfer.designs.transfer.selectors.registry import SELECTORS
from tasktransfer.results.finished import is_whole
from tasktransfer.results.study import Study


def _outputs(study: Study) -> Outputs:
    data_tables = _in("tables", outputs.DATA_TABLES, outputs.DATA_TABLE_ENDINGS)
    counted = _counts_dialogues(study, data_tables)
    drawings = [
        (name, dataset)
        for dataset in study.config.dataset_names
        for name in _figures_of(study, dataset, counted)
    ]
    names = [f"{name}_{dataset}" for name, dataset in drawings]
    names += [outputs.REGRET] if transfer_config(study).selectors else []
    return Outputs(
        tables=_in("tables", outputs.COLLECTED, ["parquet"]),
        statistics=_in("tables", _statistics(study), ["parquet"]),
        data_tables=data_tables if counted else (),
        reference=outputs.REFERENCE if _counts_dialogues(study, (outputs.REFERENCE,)) else "",
        figures=_in("figures", names, outputs.FIGURE_ENDINGS),
        printed=_in("figures", outputs.PRINTED, outputs.PRINTED_ENDINGS),
        shown=(
            *(_figure(name, dataset) for name, dataset in drawings),
            *(
                Shown(f"figures/{name}.csv", "Tables", name, {"table": title})
                for name, title in outputs.PRINTED.items()
            ),
            Shown("report.html", "Report", "report", {"page": "everything in one page"}),
        ),
        report="report.html",
    )


def _statistics(study: Study) -> tuple[str, ...]:
    config = transfer_config(study)
    asked = outputs.PROMPTED if config.prompted else ()
    more = outputs.SELECTION if config.selectors else ()
    race = (outputs.RACE,) if config.racing else ()
    return (*outputs.STATISTICS, *asked, *more, *race)


def _in(folder: str, names: object, endings: object) -> tuple[str, ...]:
    return tuple(f"{folder}/{n}.{ending}" for n in names for ending in endings)  # type: ignore[attr-defined]


def _figure(name: str, dataset: str) -> Shown:
    labels = {"figure": name.replace("_", " "), "dataset": dataset}
    return Shown(f"figures/{name}_{dataset}.png", "Figures", name, labels)


def _figures_of(study: Study, dataset: str, counted: bool) -> list[str]:
    runs = transfer_runs(study.plan)
    counts = {len(run.about["sources"]) for run in runs if run.about["dataset"] == dataset}
    if not counts:  # models are asked, and none is trained
        return []
    shuffled = SHUFFLED_SOURCE in transfer_config(study).controls
    return outputs.figures_of(counts, lengths=counted, shuffled_source=shuffled)


def _counts_dialogues(study: Study, tables: tuple[str, ...]) -> bool:
    """Whether figures or report show what the dialogues themselves tell (``tables``): where that is
    there, can be counted, or dialogues have to be prepared for trainings anyway. Where every record
    is there and the dialogues are not, figures come from records alone."""
    caches = [study.instances(dataset) for dataset in study.config.dataset_names]
    if all(Path(cache, "manifest.json").exists() for cache in caches):
        return True
    if all(Path(study.config.results, table).exists() for table in tables):
        return True
    return not all(is_whole(study, stage) for stage in study.plan.stages)


def _notes(config: TransferConfig) -> tuple[str, ...]:
    """What is to be known of the datasets; what the challenge's rules hold a study to, and what of
    them nobody can check."""
    names = config.dataset_names
    told = tuple(f"{name}: {line}" for name in names for line in DATASETS[name].told)
    if config.racing is not None:
        told = (*told, _race(config, config.racing))
    if config.rules != "challenge":
        return told
    return (*told, f"rules: challenge: {'; '.join(MEANING.values())}", OUT_OF_SCOPE)


def _refuse(study: Study) -> None:
    """Refuse pairs of two datasets whose source trains on what its target is tested with."""
    config = transfer_config(study)
    pairs = [
        (*task_of(dataset.name, source), dataset.name, target)
        for dataset in config.datasets
        for source, target in dataset.pairs
        if is_foreign(source)
    ]
    if pairs:
        refuse_leaks(study, pairs, {leak.replace(" ", "") for leak in config.allow_leaks})


def _race(config: TransferConfig, racing: RacingConfig) -> str:
    """Transfers with and without the race."""
    sources = Counter((d.name, target) for d in config.datasets for _, target in d.pairs)
    times = len(config.trained_models) * sum(name != BASELINE for name in config.algorithms)
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
    outputs=_outputs,
    collect=commands.collect,
    statistics=commands.statistics,
    figures=commands.figures,
    report=commands.report,
    choose=commands.choose,
    explain=commands.explain,
    # Records of a free study cannot be submitted to the challenge.
    facts=lambda config: {"rules": config.rules},
    notes=_notes,
    refuse=_refuse,
    rules=("submission.smk",),
    selectors=SELECTORS,
    tables_version=outputs.TABLES_VERSION,
    of_dialogues=(
        *_in("tables", outputs.DATA_TABLES, outputs.DATA_TABLE_ENDINGS),
        outputs.REFERENCE,
    ),
)
