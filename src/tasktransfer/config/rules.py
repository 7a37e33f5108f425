"""What no single key can tell: whether the parts of a study fit together.

``build`` takes the checked mapping, notes every contradiction between its keys and makes the
typed ``Config``. A part that has problems already is left out of the comparisons, so that one
slip gives one message.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from tasktransfer.config.declare import Problems, at, usable
from tasktransfer.config.keys import ALL
from tasktransfer.config.places import (
    may_be_on_the_hub,
    on_disk,
    problem_of_home,
    problem_of_results,
)
from tasktransfer.config.types import (
    TINY,
    CheckpointConfig,
    Config,
    DataConfig,
    DatasetConfig,
    ModelConfig,
    MultiSourceConfig,
    NamedMultiSource,
    TinyWorldConfig,
)
from tasktransfer.core.specs import Training
from tasktransfer.datasets import DATASETS
from tasktransfer.designs.transfer.algorithms import (
    ALGORITHMS,
    PAPER_ALGORITHMS,
    STAGE_KINDS,
    TRANSFER_ALGORITHMS,
)

Values = dict[str, Any]


def build(study: Values, problems: Problems) -> Config | None:
    """The typed study, or None where it has problems (old ones or those noted here)."""
    datasets = _datasets(study["datasets"], problems) if usable(study["datasets"]) else ()
    models = _models(study["models"], problems) if usable(study["models"]) else ()
    algorithms = _algorithms(study["algorithms"]) if usable(study["algorithms"]) else ()
    training = _training(study["training"], datasets, problems)
    checkpoints = _checkpoints(study["checkpoints"], algorithms, problems)
    multi_source = _multi_source(study["multi_source"], datasets, algorithms, problems)
    _check_places(study, models, problems)
    if datasets and algorithms:
        _refuse_transfer_without_pairs(datasets, algorithms, problems)
    if problems.found or multi_source is None or checkpoints is None:
        return None
    seeds = study["seeds"]
    data = study["data"]
    return Config(
        study=study["study"],
        results=on_disk(study["results"].rstrip("/")),
        data=DataConfig(data["release"], data["few_sample"], TinyWorldConfig(**data["tiny_world"])),
        datasets=datasets,
        models=models,
        algorithms=algorithms,
        seeds=tuple(range(seeds) if isinstance(seeds, int) else seeds),
        multi_source=multi_source,
        training=training,
        checkpoints=checkpoints,
        rules=study["rules"],
    )


def _check_places(study: Values, models: tuple[ModelConfig, ...], problems: Problems) -> None:
    places = {at(at("models", i), "checkpoint"): m.checkpoint for i, m in enumerate(models)}
    if usable(study["data"]):
        places["data.release"] = study["data"]["release"]
    found = {path: problem_of_home(place) for path, place in places.items()}
    if usable(study["results"]):
        found["results"] = problem_of_results(study["results"])
    for path, problem in found.items():
        if problem:
            problems.add(path, problem)


def _datasets(sections: Values, problems: Problems) -> tuple[DatasetConfig, ...]:
    return tuple(
        DatasetConfig(
            name=name,
            tasks=_tasks(name, section["tasks"]),
            pairs=_pairs(name, section, problems),
            shorts=tuple((task.name, task.short) for task in DATASETS[name].cards),
        )
        for name, section in sections.items()
    )


def _tasks(dataset: str, tasks: str | list[str]) -> tuple[str, ...]:
    return tuple(DATASETS[dataset].tasks) if tasks == ALL else tuple(tasks)


def _pairs(dataset: str, section: Values, problems: Problems) -> tuple[tuple[str, str], ...]:
    here, tasks = f"datasets.{dataset}", _tasks(dataset, section["tasks"])
    roles = {role: section[role] for role in ("sources", "targets")}
    if section["pairs"] is None:
        for role, names in roles.items():
            for index, name in enumerate(names if names != ALL else ()):
                _must_be_studied(name, tasks, here, at(f"{here}.{role}", index), problems)
        sources, targets = (tasks if names == ALL else names for names in roles.values())
        return tuple((s, t) for s, t in product(sources, targets) if s != t)
    for role, names in roles.items():
        if names != ALL:
            problems.add(f"{here}.{role}", "stands beside pairs, which replace it: remove one")
    for index, pair in enumerate(section["pairs"]):
        path = at(f"{here}.pairs", index)
        for role in ("source", "target"):
            _must_be_studied(pair[role], tasks, here, at(path, role), problems)
        if pair["source"] == pair["target"]:
            problems.add(
                path,
                f"source and target are the same task, {pair['target']!r}: "
                "a task cannot be its own source",
            )
    return tuple((pair["source"], pair["target"]) for pair in section["pairs"])


def _must_be_studied(
    name: str, tasks: tuple[str, ...], dataset_path: str, path: str, problems: Problems
) -> None:
    if name not in tasks:
        problems.add(path, f"{name!r} is not studied: add it to {dataset_path}.tasks")


def _models(sections: list[Values], problems: Problems) -> tuple[ModelConfig, ...]:
    models = tuple(ModelConfig(**section) for section in sections)
    seen: dict[str, int] = {}
    for index, model in enumerate(models):
        path = at("models", index)
        # Without case: the names are folders, and some file systems do not tell them apart.
        first = seen.setdefault(model.name.casefold(), index)
        if first != index:
            problems.add(
                at(path, "name"),
                f"{model.name!r} names models[{first}] already: give each model its own name",
            )
        on_the_hub = model.checkpoint != TINY and may_be_on_the_hub(model.checkpoint)
        if model.revision is not None and not on_the_hub:
            problems.add(
                at(path, "revision"),
                f"found {model.revision!r}, but only hub names have revisions and the checkpoint "
                f"is {model.checkpoint!r}: remove it",
            )
    return models


def _algorithms(names: str | list[str]) -> tuple[str, ...]:
    wanted = PAPER_ALGORITHMS if names == ALL else {"baseline", *names}
    return tuple(name for name in ALGORITHMS if name in wanted)


def _refuse_transfer_without_pairs(
    datasets: tuple[DatasetConfig, ...], algorithms: tuple[str, ...], problems: Problems
) -> None:
    for dataset in datasets:
        if len(algorithms) > 1 and not dataset.pairs:
            problems.add(
                f"datasets.{dataset.name}",
                "has no pair of a source and another task as its target: name two tasks or more, "
                "or ask for algorithms: [baseline] only",
            )


def _training(
    section: Values, datasets: tuple[DatasetConfig, ...], problems: Problems
) -> dict[str, Training]:
    if not usable(section):
        return {}
    epochs = section["epochs"]
    result = {}
    for dataset in datasets:
        if isinstance(epochs, dict) and dataset.name not in epochs:
            problems.add(
                "training.epochs", f"says nothing of {dataset.name}: add {dataset.name}: 20"
            )
            continue
        number = epochs[dataset.name] if isinstance(epochs, dict) else epochs
        result[dataset.name] = Training(**{**section, "epochs": number})
    return result


def _checkpoints(
    section: Values, algorithms: tuple[str, ...], problems: Problems
) -> CheckpointConfig | None:
    if not usable(section):
        return None
    keep = section["keep"]
    kinds: tuple[str, ...] = STAGE_KINDS if keep == ALL else tuple(keep)
    if "pretrain_finetune" in algorithms and "baseline" not in kinds:
        problems.add(
            "checkpoints.keep",
            f"found {keep!r} without 'baseline', which pretrain_finetune starts from: add it",
        )
    return CheckpointConfig(kinds)


def _multi_source(
    section: Values,
    datasets: tuple[DatasetConfig, ...],
    algorithms: tuple[str, ...],
    problems: Problems,
) -> MultiSourceConfig | None:
    if not usable(section):
        return None
    names = section["algorithms"]
    transfers = tuple(
        a for a in TRANSFER_ALGORITHMS if a in (algorithms if names == ALL else names)
    )
    named = tuple(
        NamedMultiSource(item["dataset"], item["target"], tuple(item["sources"]))
        for item in section["named"]
    )
    for index, item in enumerate(named):
        _check_named(item, datasets, at("multi_source.named", index), problems)
    mode = section["mode"]
    if mode != "off" and algorithms and not transfers:
        problems.add(
            "multi_source.algorithms",
            f"found {names!r}, which leaves no transfer algorithm: name one of "
            f"{', '.join(TRANSFER_ALGORITHMS)}",
        )
    if mode == "named" and not named:
        problems.add(
            "multi_source.named", "is empty though mode is named: name a target, or use off"
        )
    if mode == "auto":
        _check_auto(section, datasets, algorithms, problems)
    return MultiSourceConfig(
        mode=mode,
        named=named if mode == "named" else (),
        targets_per_dataset=section["targets_per_dataset"],
        sources_per_target=section["sources_per_target"],
        algorithms=transfers if mode != "off" else (),
    )


def _check_named(
    item: NamedMultiSource, datasets: tuple[DatasetConfig, ...], path: str, problems: Problems
) -> None:
    if datasets and item.dataset not in {dataset.name for dataset in datasets}:
        problems.add(
            at(path, "dataset"),
            f"{item.dataset!r} is not studied: add it to datasets, or remove this target",
        )
    places = [(item.target, at(path, "target"))]
    places += [(s, at(at(path, "sources"), i)) for i, s in enumerate(item.sources)]
    for task, place in places:
        if task not in DATASETS[item.dataset].tasks:
            home = next(name for name in DATASETS if task in DATASETS[name].tasks)
            problems.add(
                place,
                f"{task!r} is a task of {home}, not of {item.dataset}, "
                "and a study never mixes datasets: use tasks of one",
            )
        elif place != places[0][1] and task == item.target:
            problems.add(place, f"{task!r} is the target itself: a task cannot be its own source")


def _check_auto(
    section: Values,
    datasets: tuple[DatasetConfig, ...],
    algorithms: tuple[str, ...],
    problems: Problems,
) -> None:
    if algorithms and len(algorithms) == 1:
        problems.add(
            "multi_source.mode",
            "auto picks from transfer results, but algorithms has none: add one",
        )
    for dataset in datasets:
        sources = {
            target: sum(pair[1] == target for pair in dataset.pairs) for target in dataset.targets
        }
        wanted = section["targets_per_dataset"]
        if len(sources) < wanted:
            problems.add(
                "multi_source.targets_per_dataset",
                f"found {wanted}, but {dataset.name} has {len(sources)} targets: ask for fewer",
            )
        most = max(sources.values(), default=0)
        if section["sources_per_target"] > most:
            problems.add(
                "multi_source.sources_per_target",
                f"found {section['sources_per_target']}, but a target of {dataset.name} has {most} "
                "sources at most: ask for fewer",
            )
