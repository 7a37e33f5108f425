"""Commands to begin with: a demo, and checks and forecasts of a study before it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tasktransfer.cli.options import (
    add_command,
    add_flag,
    add_json,
    add_number,
    add_option,
    open_design,
    parse_folder,
    show,
)
from tasktransfer.errors import ConfigError, ModelError, escape_line, escape_text
from tasktransfer.files.progress import show_progress

if TYPE_CHECKING:
    from tasktransfer.config import ModelConfig
    from tasktransfer.core.specs import ModelSpec
    from tasktransfer.results.study import Study

DEVICES: dict[str | None, Literal["cpu", "cuda"] | None] = {"cpu": "cpu", "gpu": "cuda", None: None}


def add_commands(commands: Any) -> None:
    """Add ``demo``, ``plan`` and ``validate``."""
    command = add_command(commands, "demo", demo, config=False)
    what, default = "new or empty folder (default: %(default)s)", Path("tasktransfer-demo")
    add_option(command, "--folder", "DIR", what, type=parse_folder, default=default)
    add_number(command, "--cores", "CPU cores (default: all)")
    add_flag(command, "--dry-run", "write the files, and list the jobs without running them")
    command = add_command(commands, "plan", plan, light=True)
    what = "number of parallel training runs (default: one per GPU, without GPUs one per core)"
    add_number(command, "--devices", what)
    what = "kind of device to forecast for (default: that of the records, else of this machine)"
    command.add_argument("--on", choices=("cpu", "gpu"), help=what)
    add_option(command, "--card", "NAME", "GPU model to forecast for, for example A100, L4 or H100")
    what = "measure this machine's speed again; without it a measurement is cached for a day"
    add_flag(command, "--calibrate", what)
    add_json(command)
    command = add_command(commands, "validate", validate, light=True)
    add_flag(command, "--config-only", "check only the config, not the data and models it names")
    what = "delete cached probes of endpoints; each is probed again before its next evaluation"
    add_flag(command, "--probe-again", what)
    add_json(command)


def demo(chosen: argparse.Namespace) -> None:
    """Write the demo study into an empty folder and run it there (a few minutes, offline)."""
    from tasktransfer.cli.demo_study import run_demo, write_demo
    from tasktransfer.designs import load_config

    write_demo(chosen.folder)
    run_demo(chosen.folder, chosen.cores, dry_run=chosen.dry_run)
    if chosen.dry_run:
        print(
            f"{chosen.folder}: The study was written. Run `snakemake --cores all` in this folder."
        )
    else:
        results = chosen.folder / load_config(chosen.folder / "config.yaml").results
        print(f"figures and tables: {results / 'figures'}")
        print(f"report: {results / 'report.html'}")


def plan(chosen: argparse.Namespace) -> None:
    """Count a study's runs, and estimate its hours, wall time and disk space."""
    from tasktransfer.operate.forecast.estimate import Estimates
    from tasktransfer.operate.forecast.rates import find_card_rates, measure_machine_rates
    from tasktransfer.operate.overview import summarise_study
    from tasktransfer.operate.overview_text import as_text

    card = None if chosen.card is None else find_card_rates(chosen.card)
    if card is not None and (chosen.on == "cpu" or chosen.calibrate):
        other = "--calibrate" if chosen.calibrate else "--on cpu"
        raise ConfigError(
            f"--card {chosen.card}: The option contradicts {other}. Remove one of the two."
        )
    study, design = open_design(chosen, need_inputs=False)
    device = "cuda" if card else DEVICES[chosen.on]
    estimates = Estimates(study, device)
    rates = card or measure_machine_rates(estimates.device, again=chosen.calibrate)
    seen = summarise_study(study, chosen.devices, rates, device)
    seen["lacking"] += design.shortages(study)
    show(seen, as_text, as_json=chosen.json)
    for line in () if chosen.json else design.notes(study.config):
        print(escape_line(line))


def validate(chosen: argparse.Namespace) -> None:
    """Check a config file, and the data and models that its runs need."""
    from tasktransfer.designs import refuse_shortages
    from tasktransfer.operate.endpoints import (
        delete_probes,
        describe_endpoints,
        format_endpoints,
        refuse_endpoints,
    )
    from tasktransfer.operate.lacking import refuse_absent, refuse_lacking

    study, design = open_design(chosen, need_inputs=False)
    if not chosen.config_only:
        refuse_absent(study)
        refuse_lacking(study)
        refuse_shortages(study)
    skipped = ["data and models (--config-only)"] if chosen.config_only else []
    not_checked = [*skipped, *study.absent]
    if not chosen.json:
        for text in not_checked:
            print(f"not checked: {escape_text(text)}")
    if not chosen.config_only:
        _validate_models(study)
        _validate_prompts(study)
    refuse_endpoints(study.config)
    name, notes = study.config.study, [*design.notes(study.config)]
    if chosen.probe_again:
        notes += delete_probes(study.config)
    endpoints = describe_endpoints(study.config)
    seen = {
        "config": chosen.config,
        "study": name,
        "not_checked": not_checked,
        "notes": notes,
        "endpoints": endpoints,
    }
    told = [f"{chosen.config}: ok, study {name}", *notes, *format_endpoints(endpoints)]
    lines = map(escape_line, told)
    show(seen, lambda _: "".join(f"{line}\n" for line in lines), as_json=chosen.json)


def _validate_models(study: Study) -> None:
    """Load the models that are on the disk. Hub models are skipped: they need a download."""
    from tasktransfer.config.places import expand_path

    lengths = [(model.name, model.max_length) for _, model in _collect_prompted_models(study)]
    refused = []
    for model in show_progress(study.config.models, "loading models"):
        start = expand_path(model.checkpoint)
        longest = max(model.max_length, *(n for name, n in lengths if name == model.name), 0)
        try:
            if model.has_checkpoint and Path(start).exists():
                check_checkpoint(model.model_copy(update={"max_length": longest}), start)
        except ModelError as error:
            refused.append(str(error))
    if refused:
        raise ModelError("\n".join(refused))


def _validate_prompts(study: Study) -> None:
    """Render example prompts of the prompted models on the disk, with their chat templates."""
    from tasktransfer.errors import print_note

    cases: dict[tuple[str, Any, bool], ModelSpec] = {}
    for asked, model in _collect_prompted_models(study):
        if Path(study.base_model(model.name)).is_dir():
            cases[model.name, asked.get("chat", "auto"), bool(asked["shots"])] = model
    notes: list[str] = []
    for (name, chat, examples), model in cases.items():
        from tasktransfer.evaluation.prompting.load import check_prompts

        seen = check_prompts(model, study.base_model(name), chat, examples=examples)
        notes += [f"model {name}: {note}" for note in seen]
    for note in dict.fromkeys(notes):
        print_note(note)


def _collect_prompted_models(study: Study) -> Iterator[tuple[Mapping[str, Any], ModelSpec]]:
    """Yield the prompt settings and the model of each evaluation that prompts a local model."""
    from tasktransfer.core.nodes import Outcome

    for node in study.plan.evaluations:
        model = node.of.model if isinstance(node.of, Outcome) else None
        if node.asked is not None and model is not None and not model.served:
            yield node.asked, model


def check_checkpoint(model: ModelConfig, start: str) -> None:
    """Raise ModelError if weights or tokenizer do not fit each other, the family or the study.

    Args:
        start: folder or hub name of the checkpoint.
    """
    from tasktransfer.models.check_model import check_model
    from tasktransfer.results.revisions import get_hub_revision, is_hub_name

    revision = get_hub_revision(model) if is_hub_name(start) else None
    check_model(model.loaded_as, start, revision, model.max_length, make_note_callback(model))


def make_note_callback(model: ModelConfig) -> Callable[[str], None]:
    """Return a callback that prints missing and unused weights of a model's checkpoint."""
    return lambda text: print(f"model {model.name}: {text}", file=sys.stderr)
