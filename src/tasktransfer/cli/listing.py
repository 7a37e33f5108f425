"""The commands ``ls`` and ``cp``: list what the package contains, and copy its presets."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from tasktransfer.cli.demo_study import WORKFLOW
from tasktransfer.cli.options import add_command, add_json_option, add_option, print_result
from tasktransfer.errors import ConfigError, suggest_name

PRESETS = WORKFLOW / "presets"
Row = dict[str, Any]


def add_commands(commands: Any) -> None:
    """Add the commands ``ls`` and ``cp``."""
    command = add_command(commands, "ls", list_items, config=False)
    command.add_argument("kind", choices=tuple(LISTS), help="kind of items to list")
    add_json_option(command)
    command = add_command(commands, "cp", copy_preset, config=False)
    add_option(
        command, "preset", "PRESET", "copy this preset; `tasktransfer ls presets` lists their names"
    )
    add_option(
        command, "file", "FILE", "write the copy to this file, which must not exist", type=Path
    )


def list_items(args: argparse.Namespace) -> None:
    """List the tasks, models, presets, selectors or designs of the package."""
    from tasktransfer.present.columns import format_table

    rows = list(LISTS[args.kind]())
    print_result(rows, lambda rows: "\n".join(format_table(rows)) + "\n", as_json=args.json)


def copy_preset(args: argparse.Namespace) -> None:
    """Copy a preset to a new file that you can edit and run."""
    names = [file.stem for file in sorted(PRESETS.glob("*.yaml"))]
    name = args.preset.removesuffix(".yaml")
    if name not in names:
        raise ConfigError(
            f"{args.preset}: There is no preset with this name.{suggest_name(name, names)} Choose "
            f"one of {', '.join(names)}."
        )
    file = args.file / f"{name}.yaml" if args.file.is_dir() else args.file
    if file.exists():
        raise ConfigError(f"{file}: The file exists and is not overwritten. Choose another name.")
    file.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(PRESETS / f"{name}.yaml", file)
    results = yaml.safe_load(file.read_text("utf-8"))["results"]
    print(
        f"{file}: The preset was copied. Run it with `tasktransfer run {file}`. It shares the "
        f"folder {results} with the preset and reuses finished runs. Set `results` to a new folder "
        "to start afresh."
    )


def list_tasks() -> Iterator[Row]:
    """Yield the tasks of FETA's datasets, with descriptions."""
    from tasktransfer.datasets import ALL_TASKS

    for card in ALL_TASKS:
        yield {
            "task": f"{card.dataset}/{card.name}",
            "short": card.short,
            "kind": card.kind,
            "description": card.description,
        }


def list_models() -> Iterator[Row]:
    """Yield the models in the presets, with the presets that use them."""
    models: dict[tuple[str, str], list[str]] = {}
    for name, config in _read_presets():
        for model in config.get("models", []):
            key = (str(model.get("checkpoint", "")), str(model.get("family", "")))
            presets = models.setdefault(key, [])
            if name not in presets:
                presets.append(name)
    for (checkpoint, family), presets in sorted(models.items()):
        yield {"checkpoint": checkpoint, "family": family, "presets": ", ".join(presets)}


def list_presets() -> Iterator[Row]:
    """Yield the presets, with the first sentence of each preset's comment."""
    for name, config in _read_presets():
        yield {
            "preset": name,
            "design": config.get("design", "transfer"),
            "purpose": _extract_first_sentence((PRESETS / f"{name}.yaml").read_text("utf-8")),
        }


def list_selectors() -> Iterator[Row]:
    """Yield the selectors (methods that rank sources), with descriptions."""
    from tasktransfer.selection.methods import SELECTORS

    for selector in SELECTORS.values():
        text = (selector.values.__doc__ if selector.values else None) or PROBE
        purpose = " ".join(text.split("\n\n")[0].split())
        yield {"selector": selector.name, "description": purpose}


PROBE = "Dev gain of a short pre-train → fine-tune run."


def list_designs() -> Iterator[Row]:
    """Yield the designs, with their purposes."""
    from tasktransfer.designs import DESIGNS

    for name in DESIGNS:
        yield {"design": name, "purpose": PURPOSES.get(name, "added by a plugin")}


PURPOSES = {
    "transfer": "Does training on a source task improve a target task? (FETA; your own dialogues)",
    "empathetic": "Does knowing the emotion make responses better? (EmpatheticDialogues)",
    "panel": "Do expert adapters rate responses as people do? (Panel of Experts)",
    "probes": "What do the encoders of generative models know during training?",
}
LISTS: dict[str, Callable[[], Iterator[Row]]] = {
    "tasks": list_tasks,
    "models": list_models,
    "presets": list_presets,
    "selectors": list_selectors,
    "designs": list_designs,
}


def _read_presets() -> Iterator[tuple[str, dict[str, Any]]]:
    for file in sorted(PRESETS.glob("*.yaml")):
        yield file.stem, yaml.safe_load(file.read_text("utf-8"))


def _extract_first_sentence(text: str) -> str:
    """Extract the first sentence of a file's leading comment."""
    comment: list[str] = []
    for line in text.splitlines():
        if not line.startswith("#") or not line.strip("# "):
            break
        comment.append(line.lstrip("# "))
    sentence, dot, _ = " ".join(comment).partition(". ")
    return f"{sentence}." if dot else sentence.rstrip(":")
