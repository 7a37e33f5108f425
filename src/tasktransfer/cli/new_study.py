"""``tasktransfer init``: create a study of your own dialogues that fits a time budget."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from tasktransfer.cli.commented_methods import add_methods
from tasktransfer.cli.demo_study import SNAKEFILE, WORKFLOW
from tasktransfer.config.yaml_text import format_comment, format_yaml
from tasktransfer.core.references import CONTRASTIVE, REFERENCES, SVM
from tasktransfer.datasets import PACKAGE_DATASETS
from tasktransfer.datasets.dataset import Dataset
from tasktransfer.datasets.declared.lengths import DialogueLengths
from tasktransfer.datasets.declared.spellings import normalise_label
from tasktransfer.errors import ConfigError
from tasktransfer.files import create_folder, json_text, replace_file
from tasktransfer.files.progress import show_progress

CONFIG = "config.yaml"
FORECAST_MAY_MISS = 1.5
"""Factor by which a forecast without records may be too low. A study has to fit even then."""
LEAST_HIDDEN = 128
"""Smallest hidden size of an encoder that is fine-tuned contrastively. Smaller encoders, such as
the tiny model, have embeddings that are too poor to start from."""
LEFT_OUT = (
    "The time budget of {:g} h is too short for contrastive fine-tuning (contrastive_logistic), "
    "which may score higher than the other references. Allow more --hours to compare it."
)
FEW_SOURCES = 3
"""Number of sources per dataset if time is short."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a study: the values that are reduced if time is short.

    The number of updates is not among them. It comes from the recipe of the model's size, because
    a model that has not learned its task shows nothing about transfer.
    """

    seeds: int
    limit_train: int | None
    limit_dev: int | None
    limit_test: int | None
    max_length: int

    def __str__(self) -> str:
        cuts = {"training": self.limit_train, "dev": self.limit_dev, "test": self.limit_test}
        listed = ", ".join(f"{cut:,} {split}" for split, cut in cuts.items() if cut)
        whole = f"at most {listed} instances per task" if listed else "all instances"
        return f"{self.seeds} seeds, {whole}, {self.max_length} tokens"


SIZES = (
    Size(5, None, None, None, 256),
    Size(5, 2000, 500, None, 256),
    Size(5, 1000, 300, 1000, 256),
    Size(5, 1000, 300, 1000, 128),
    Size(4, 1000, 200, 600, 128),
    Size(3, 1000, 200, 600, 128),
    Size(3, 600, 150, 400, 128),
    Size(3, 400, 100, 300, 96),
)
"""Sizes to try, largest first. All have at least three seeds, so that differences are tested."""


@dataclass(frozen=True, slots=True)
class StudyRequest:
    """A request for a study of your own dialogues.

    Attributes:
        label: name of the target's field or task.
        models: folder or hub name of each model, or tiny.
        hours: time budget in hours on this machine.
        folder: folder of the study.
        name: name of the dataset.
        family: family of the models, None to infer each from its checkpoint.
        release: folder of FETA's release, None for the tiny world.
        cores: number of CPU cores, None for all.
    """

    label: str
    models: tuple[str, ...]
    hours: float
    folder: Path
    name: str
    family: str | None = None
    release: Path | None = None
    cores: int | None = None


@dataclass(frozen=True, slots=True)
class WrittenStudy:
    """A study that was written: its config, its size and the forecast of its hours."""

    config: dict[str, Any]
    size: Size
    hours: float
    sources: int
    notes: tuple[str, ...] = ()


def write_study(
    request: StudyRequest, declared: Mapping[str, Any], lengths: DialogueLengths | None = None
) -> WrittenStudy:
    """Write config.yaml, a Snakefile and the default profile into a folder.

    Args:
        declared: the dataset as ``data check`` declares it, with paths relative to the current
            folder.
        lengths: lengths of the dialogues, to declare which part of a truncated dialogue is kept.

    Raises:
        ConfigError: the folder contains a study, the requested task does not exist, or no study of
            it fits the time budget.
        DataError, ModelError: files or model are missing or damaged.
    """
    for name in (CONFIG, "Snakefile"):
        if (request.folder / name).exists():
            raise ConfigError(
                f"{request.folder / name}: The file exists and is not overwritten. Choose "
                "another folder (--out)."
            )
    target = find_target(request.label, declared)
    with create_folder(request.folder):
        written = _find_fitting_study(request, declared, target, lengths)
        _write_files(request.folder, written, request)
    return written


def _find_fitting_study(
    request: StudyRequest,
    declared: Mapping[str, Any],
    target: str,
    lengths: DialogueLengths | None,
) -> WrittenStudy:
    """Find the largest study that fits the time budget.

    Raises:
        ConfigError: not even the smallest study fits.
    """
    written = None
    kind = declared["tasks"][target]["kind"]
    references = list_references(request)
    smaller = list(product(_propose_sources(kind), SIZES, [references]))
    if CONTRASTIVE in references:
        smaller += product([{}], SIZES, [[name for name in references if name != CONTRASTIVE]])
    for sources, size, names in show_progress(smaller, "searching for a study size that fits"):
        config = _build_config(request, declared, target, sources, size, names)
        own = config["datasets"][request.name]["tasks"]
        notes = lengths.set_truncation(own, size.max_length) if lengths else []
        hours = _forecast_hours(request, config)
        if CONTRASTIVE in references and CONTRASTIVE not in names:
            notes.append(LEFT_OUT.format(request.hours))
        written = WrittenStudy(config, size, hours, _count_sources(config), tuple(notes))
        if hours * FORECAST_MAY_MISS <= request.hours:
            return written
    assert written is not None
    raise ConfigError(
        f"--hours: The time budget of {request.hours:g} h is too short. Training "
        f"{' and '.join(choose_model_names(request.models))} on {target} alone ({written.size}) "
        f"takes {written.hours:.2g} h according to the forecast, and may take "
        f"{FORECAST_MAY_MISS * written.hours:.2g} h. Allow more hours, or choose "
        f"{'a smaller model' if len(request.models) == 1 else 'fewer or smaller models'}."
    )


def find_target(label: str, declared: Mapping[str, Any]) -> str:
    """Find the task whose name or label field is ``label``.

    Raises:
        ConfigError: the declared dataset has no such task.
    """
    for task, section in declared["tasks"].items():
        path = str(section.get("label", ""))
        if normalise_label(label) in map(normalise_label, (task, path, path.rpartition(".")[2])):
            return str(task)
    listed = ", ".join(declared["tasks"])
    raise ConfigError(
        f"--label {label}: No field with this name looks like a label. The files have "
        f"{listed or 'no label field'}. Choose one of these fields, or add a task to the "
        "declaration that `tasktransfer data check` prints."
    )


def _propose_sources(kind: str) -> Iterator[dict[str, list[str]]]:
    """Yield selections of FETA tasks by dataset, each smaller than the one before.

    The first has all classification tasks. The next two have ``FEW_SOURCES`` tasks and one task per
    dataset, which are of the target's kind if the dataset has this kind. The last is empty, which
    leaves only the baseline and the references.
    """
    classified = ("utterance_classification", "dialogue_classification", "multi_label")

    def tasks(dataset: Dataset, kinds: tuple[str, ...]) -> list[str]:
        return [card.name for card in dataset.cards if card.kind in kinds]

    yield {dataset.name: tasks(dataset, classified) for dataset in PACKAGE_DATASETS}
    alike = {dataset.name: tasks(dataset, (kind,)) for dataset in PACKAGE_DATASETS}
    whole = {
        name: some or tasks(d, classified)
        for d, (name, some) in zip(PACKAGE_DATASETS, alike.items(), strict=True)
    }
    yield {name: some[:FEW_SOURCES] for name, some in whole.items()}
    yield {name: some[:1] for name, some in whole.items()}
    yield {}


def _build_config(
    request: StudyRequest,
    declared: Mapping[str, Any],
    target: str,
    sources: Mapping[str, list[str]],
    size: Size,
    references: Sequence[str],
) -> dict[str, Any]:
    """Return the config of a study, with paths relative to its folder."""
    by_split = declared["files"]
    if not isinstance(by_split, Mapping):  # a declaration that is written by hand
        by_split = {"train": by_split}
    files = {
        split: [_make_relative(request.folder, Path(path)) for path in _as_list(some)]
        for split, some in by_split.items()
        if some is not None
    }
    own = {**declared, "files": {s: f[0] if len(f) == 1 else f for s, f in files.items()}}
    own["tasks"] = dict(declared["tasks"])
    if not sources:
        own["tasks"] = {target: declared["tasks"][target]}
    tiny = request.release is None
    release = "tiny_world" if tiny else _make_relative(request.folder, request.release or Path())
    purpose = "what to train on before" if sources else "a model for"
    limits = {
        key: value
        for key in ("limit_train", "limit_dev", "limit_test")
        if (value := getattr(size, key)) is not None
    }
    return {
        "study": f"{purpose} {request.name}/{target}",
        "data": {"release": release},
        "datasets": {
            request.name: own,
            **{
                name: {"tasks": _select_tiny_tasks(name, tasks) if tiny else tasks}
                for name, tasks in sources.items()
            },
        },
        **(_describe_pairs(request.name, target, sources) if sources else {}),
        "models": [
            _describe_model(name, model, request, size)
            for name, model in zip(choose_model_names(request.models), request.models, strict=True)
        ],
        "references": [*references],
        "algorithms": ["baseline", "pretrain_finetune"] if sources else ["baseline"],
        **({"check_baselines": True} if sources else {}),
        "seeds": size.seeds,
        "training": {"recipe": "auto", **limits},
    }


def list_references(request: StudyRequest) -> list[str]:
    """Return the references that a study compares with, which take only minutes.

    Contrastive fine-tuning is among them if a model is an encoder of at least ``LEAST_HIDDEN``.
    """
    is_tuned = any(_can_be_tuned(model, request.family) for model in request.models)
    left_out = (SVM,) if is_tuned else (SVM, CONTRASTIVE)
    return [name for name in REFERENCES if name not in left_out]


def _can_be_tuned(model: str, family: str | None) -> bool:
    folder = Path(model).expanduser()
    hidden = json_text.read_object(folder / "config.json").get("hidden_size", LEAST_HIDDEN)
    is_encoder = (family or _infer_family(folder)) == "encoder"
    return is_encoder and model != "tiny" and hidden >= LEAST_HIDDEN


def choose_model_names(models: Sequence[str]) -> list[str]:
    """Choose distinct names for models, from the last parts of their paths.

    Raises:
        ConfigError: a model is given twice.
    """
    names: list[str] = []
    for number, model in enumerate(models):
        if model in models[:number]:
            raise ConfigError(
                f"--model {model}: The model is given twice. Remove one of the two options."
            )
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(model).name).strip("._-") or "model"
        earlier = [name.casefold() for name in names]
        names.append(stem if stem.casefold() not in earlier else f"{stem}-{number + 1}")
    return names


def _describe_model(name: str, model: str, request: StudyRequest, size: Size) -> dict[str, Any]:
    """Return a model's entry in the section ``models`` of the config."""
    folder = Path(model).expanduser()
    return {
        "name": name,
        "family": request.family or _infer_family(folder),
        "checkpoint": _make_relative(request.folder, Path(model)) if folder.is_dir() else model,
        "max_length": size.max_length,
        **({"max_unknown_words": 1.0} if model == "tiny" else {}),
    }


def _describe_pairs(
    name: str, target: str, sources: Mapping[str, list[str]]
) -> dict[str, list[str]]:
    return {
        "targets": [f"{name}/{target}"],
        "sources": [f"{dataset}/*" for dataset in (name, *sources)],
    }


def _select_tiny_tasks(dataset: str, tasks: list[str]) -> list[str]:
    (tiny,) = (known.tiny for known in PACKAGE_DATASETS if known.name == dataset)
    return [task for task in tasks if tiny is not None and task in tiny.sizes]


def _count_sources(config: Mapping[str, Any]) -> int:
    """Count the sources of the target in a config."""
    return sum(len(section["tasks"]) for section in config["datasets"].values()) - 1


def _infer_family(folder: Path) -> str:
    """Infer the family of a checkpoint from its config, with ``encoder`` as the default."""
    content = json_text.read_object(folder / "config.json")
    if content.get("is_encoder_decoder"):
        return "encoder_decoder"
    names = content.get("architectures") or [""]
    return "decoder" if str(names[0]).endswith(("CausalLM", "LMHeadModel")) else "encoder"


def _forecast_hours(request: StudyRequest, config: dict[str, Any]) -> float:
    """Forecast the wall time of a study on this machine in hours."""
    from tasktransfer.designs import open_study
    from tasktransfer.operate.forecast.rates import measure_machine_rates
    from tasktransfer.operate.overview import summarise_study
    from tasktransfer.training.device import list_devices

    with chdir(request.folder):
        draft = Path(f".{CONFIG}")
        try:
            draft.write_text(format_yaml(config), "utf-8")
            study = open_study(draft)
            has_gpu = bool(list_devices())
            rates = measure_machine_rates("cuda" if has_gpu else "cpu")
            result = summarise_study(study, None if has_gpu else request.cores, rates)
            return float(result["estimate"]["total"]["wall_hours"])
        finally:
            draft.unlink(missing_ok=True)


def _write_files(folder: Path, written: WrittenStudy, request: StudyRequest) -> None:
    profile = "profiles/default/config.yaml"
    lines = (
        f"{_describe_purpose(written, request)}. Written by `tasktransfer init`; the forecast is",
        f"{written.hours:.2g} h on this machine. Size: {written.size}.",
        "",
        "  tasktransfer run            run it; results/report.html begins with the answer",
        "  tasktransfer plan           forecast hours, wall time and disk space",
    )
    head = "\n".join(map(format_comment, lines))
    texts = {
        CONFIG: f"{head}\n\n{add_methods(format_yaml(written.config), written.config['models'])}",
        "Snakefile": SNAKEFILE,
        profile: (WORKFLOW / profile).read_text("utf-8"),
    }
    for name, text in texts.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(file) as part:
            part.write_text(text, "utf-8")


def _describe_purpose(written: WrittenStudy, request: StudyRequest) -> str:
    if written.sources:
        return f"Finds the best source task for {request.name}"
    trained = "a model" if len(request.models) == 1 else f"{len(request.models)} models"
    return f"Compares {trained} trained on {request.name} with simple references"


def _make_relative(folder: Path, path: Path) -> str:
    """Return a path relative to a study's folder, unless it begins with ``~``."""
    if str(path).startswith("~"):
        return str(path)
    result = os.path.relpath(path, folder)
    return result if result.startswith(".") else f"./{result}"


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
