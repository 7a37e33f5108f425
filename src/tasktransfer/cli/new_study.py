"""``tasktransfer init``: create a study of your own dialogues that fits a time budget."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer.cli.commented_methods import add_methods
from tasktransfer.cli.demo_study import SNAKEFILE, WORKFLOW
from tasktransfer.cli.study_forecast import forecast_draft, time_updates_of_draft
from tasktransfer.cli.study_notes import TriedStudy, explain_short_budget, list_budget_notes
from tasktransfer.cli.study_sizes import (
    InputLengths,
    Size,
    StudyProposal,
    choose_input_lengths,
    propose_studies,
)
from tasktransfer.config.places import is_gguf
from tasktransfer.config.yaml_text import format_comment, format_yaml
from tasktransfer.core.references import CONTRASTIVE, REFERENCES, SVM
from tasktransfer.datasets import PACKAGE_DATASETS
from tasktransfer.datasets.declared.input_lengths import TextsCounter, measure_inputs
from tasktransfer.datasets.declared.lengths import DialogueLengths, set_truncation_by_task
from tasktransfer.datasets.declared.spellings import normalise_label
from tasktransfer.errors import ConfigError
from tasktransfer.files import create_folder, json_text, replace_file
from tasktransfer.files.progress import show_progress
from tasktransfer.tasks.card import SINGLE_LABEL

CONFIG = "config.yaml"
MANY_POSITIONS = 1_000_000
"""Number of tokens that a model is assumed to read if its checkpoint does not state it."""
LEAST_HIDDEN = 128
"""Smallest hidden size of an encoder that is fine-tuned contrastively. Smaller encoders, such as
the tiny model, have embeddings that are too poor to start from."""
LEFT_OUT = (
    "The time budget of {:g} h is too short for contrastive fine-tuning (contrastive_logistic), "
    "which may score higher than the other references. Allow more --hours to compare it."
)


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

    @property
    def run_command(self) -> str:
        """Command that runs the study on the requested number of CPU cores."""
        return "tasktransfer run" + (f" --cores {self.cores}" if self.cores else "")


@dataclass(frozen=True, slots=True)
class WrittenStudy:
    """A study that was written: its config, its size and the forecast of its hours."""

    config: dict[str, Any]
    size: Size
    hours: float
    sources: int
    notes: tuple[str, ...] = ()


def write_study(
    request: StudyRequest, declared: Mapping[str, Any], count_tokens: TextsCounter
) -> WrittenStudy:
    """Write config.yaml, a Snakefile and the default profile into a folder.

    Args:
        declared: the dataset as ``data check`` declares it, with paths relative to the current
            folder.
        count_tokens: function that counts tokens. The lengths of the inputs give ``max_length`` and
            the part of a truncated dialogue that is kept.

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
    lengths = measure_inputs(declared, request.name, count_tokens)
    with create_folder(request.folder):
        written = _find_fitting_study(request, declared, target, lengths)
        _write_files(request.folder, written, request)
    return written


def _find_fitting_study(
    request: StudyRequest,
    declared: Mapping[str, Any],
    target: str,
    inputs: Mapping[str, DialogueLengths],
) -> WrittenStudy:
    """Find the largest study that fits the time budget.

    Args:
        inputs: task → lengths of its inputs.

    Raises:
        ConfigError: not even the smallest study fits.
    """
    lengths = _choose_lengths(request, inputs[target])
    kinds = {task: str(section["kind"]) for task, section in declared["tasks"].items()}
    kind = kinds.pop(target)
    references = list_references(request, kind)
    proposals = list(propose_studies(kind, {request.name: kinds}, references, lengths))
    draft = _build_config(request, declared, target, proposals[0])
    timed = time_updates_of_draft(draft, request.folder)
    tried = list[TriedStudy]()
    for proposal in show_progress(proposals, "searching for a study size that fits"):
        config = _build_config(request, declared, target, proposal)
        forecast = forecast_draft(config, request.folder, (request.name, target), request.cores)
        tried.append(TriedStudy(proposal, forecast))
        if tried[-1].fits(request.hours):
            break
    else:
        names = choose_model_names(request.models)
        raise ConfigError(explain_short_budget(tried, request.hours, names, target))
    if not proposal.sources:
        proposal = proposal._replace(size=proposal.size.drop_limits(forecast.instances))
        config = _build_config(request, declared, target, proposal)
    notes = _set_truncation(config["datasets"][request.name], target, inputs, proposal.size)
    notes += timed
    notes += list_budget_notes(tried, request.hours, target, kind, lengths)
    if CONTRASTIVE in references and CONTRASTIVE not in proposal.references:
        notes.append(LEFT_OUT.format(request.hours))
    sources = _count_sources(config)
    return WrittenStudy(config, proposal.size, forecast.hours, sources, tuple(notes))


def _set_truncation(
    own: dict[str, Any], target: str, inputs: Mapping[str, DialogueLengths], size: Size
) -> list[str]:
    """Set which part of truncated dialogues each task of the user's dataset keeps.

    Returns:
        Notes on the truncation of the target's inputs, and on the parts that tasks keep.
    """
    turns = own["dialogue"].get("turns")
    told = set_truncation_by_task(own["tasks"], inputs, size.max_length, turns)
    return [note for task, notes in told.items() for note in notes[0 if task == target else 1 :]]


def _choose_lengths(request: StudyRequest, inputs: DialogueLengths) -> InputLengths:
    """Choose the maximum sequence length of a study from its target's inputs and its models."""
    folders = [Path(model).expanduser() for model in request.models]
    has_prompts = any((request.family or _infer_family(each)) != "encoder" for each in folders)
    readable = min(map(_count_positions, folders))
    return choose_input_lengths(inputs, readable, has_prompts=has_prompts)


def _count_positions(folder: Path) -> int:
    """Return the number of tokens that a model can read, or a large number if it is unknown.

    It is unknown for hub models and for GGUF files. Encoders like RoBERTa, whose padding token has
    the id 1, count positions from this id.
    """
    content = json_text.read_object(folder / "config.json")
    positions = content.get("max_position_embeddings") or content.get("n_positions")
    if not isinstance(positions, int):
        return MANY_POSITIONS
    return positions - 2 if content.get("pad_token_id") == 1 else positions


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


def _build_config(
    request: StudyRequest,
    declared: Mapping[str, Any],
    target: str,
    proposal: StudyProposal,
) -> dict[str, Any]:
    """Return the config of a study, with paths relative to its folder."""
    sources, size = proposal.sources, proposal.size
    by_split = declared["files"]
    if not isinstance(by_split, Mapping):  # a declaration that is written by hand
        by_split = {"train": by_split}
    files = {
        split: [_make_relative(request.folder, Path(path)) for path in _as_list(some)]
        for split, some in by_split.items()
        if some is not None
    }
    own = {**declared, "files": {s: f[0] if len(f) == 1 else f for s, f in files.items()}}
    kept = (target, *sources.get(request.name, ()))
    own["tasks"] = {task: declared["tasks"][task] for task in declared["tasks"] if task in kept}
    tiny = request.release is None
    release = "tiny_world" if tiny else _make_relative(request.folder, request.release or Path())
    purpose = "what to train on before" if sources else "a model for"
    limits = {f"limit_{split}": limit for split, limit in size.limits.items()}
    return {
        "study": f"{purpose} {request.name}/{target}",
        "data": {"release": release},
        "datasets": {
            request.name: own,
            **{
                name: {"tasks": _select_tiny_tasks(name, tasks) if tiny else tasks}
                for name, tasks in sources.items()
                if name != request.name
            },
        },
        **(_describe_pairs(request.name, target, sources) if sources else {}),
        "models": [
            _describe_model(name, model, request, size)
            for name, model in zip(choose_model_names(request.models), request.models, strict=True)
        ],
        "references": [*proposal.references],
        "algorithms": ["baseline", "pretrain_finetune"] if sources else ["baseline"],
        **({"check_baselines": True} if sources else {}),
        "seeds": size.seeds,
        "training": {"recipe": "auto", **limits},
    }


def list_references(request: StudyRequest, kind: str) -> list[str]:
    """Return the references that a study compares with, which take only minutes.

    Contrastive fine-tuning is among them if a model is an encoder of at least ``LEAST_HIDDEN``, and
    if the target's kind has one label per instance.
    """
    is_tuned = kind in SINGLE_LABEL and any(
        _can_be_tuned(model, request.family) for model in request.models
    )
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
        "checkpoint": _make_relative(request.folder, Path(model)) if folder.exists() else model,
        "max_length": size.max_length,
        **({"max_unknown_words": 1.0} if model == "tiny" else {}),
    }


def _describe_pairs(
    name: str, target: str, sources: Mapping[str, list[str]]
) -> dict[str, list[str]]:
    return {
        "targets": [f"{name}/{target}"],
        "sources": [f"{dataset}/*" for dataset, tasks in sources.items() if tasks],
    }


def _select_tiny_tasks(dataset: str, tasks: list[str]) -> list[str]:
    (tiny,) = (known.tiny for known in PACKAGE_DATASETS if known.name == dataset)
    return [task for task in tasks if tiny is not None and task in tiny.sizes]


def _count_sources(config: Mapping[str, Any]) -> int:
    """Count the sources of the target in a config."""
    return sum(len(section["tasks"]) for section in config["datasets"].values()) - 1


def _infer_family(folder: Path) -> str:
    """Infer the family of a checkpoint from its config, with ``encoder`` as the default.

    GGUF files contain decoders.
    """
    if is_gguf(folder.name):
        return "decoder"
    content = json_text.read_object(folder / "config.json")
    if content.get("is_encoder_decoder"):
        return "encoder_decoder"
    names = content.get("architectures") or [""]
    return "decoder" if str(names[0]).endswith(("CausalLM", "LMHeadModel")) else "encoder"


def _write_files(folder: Path, written: WrittenStudy, request: StudyRequest) -> None:
    profile = "profiles/default/config.yaml"
    lines = (
        f"{_describe_purpose(written, request)}. Written by `tasktransfer init`; the forecast is",
        f"{written.hours:.2g} h on this machine. Size: {written.size}.",
        "",
        f"  {request.run_command:<26}  run it; results/report.html begins with the answer",
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
