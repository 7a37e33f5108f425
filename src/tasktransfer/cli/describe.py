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
    add_json_option,
    add_number,
    add_option,
    open_design,
    parse_folder,
    print_result,
)
from tasktransfer.errors import ConfigError, ModelError, escape_line, escape_text
from tasktransfer.files.progress import show_progress

if TYPE_CHECKING:
    from tasktransfer.config import ModelConfig
    from tasktransfer.core.specs import ModelSpec
    from tasktransfer.results.study import Study

DEVICES: dict[str | None, Literal["cpu", "cuda"] | None] = {"cpu": "cpu", "gpu": "cuda", None: None}


def add_commands(commands: Any) -> None:
    """Add the commands ``demo``, ``plan`` and ``validate``."""
    command = add_command(commands, "demo", start_demo, config=False)
    what, default = (
        "write the study into this new or empty folder (default: %(default)s)",
        Path("tasktransfer-demo"),
    )
    add_option(command, "--folder", "DIR", what, type=parse_folder, default=default)
    add_number(command, "--cores", "use at most N CPU cores (default: all)")
    add_flag(command, "--dry-run", "write the files, and list the jobs without running them")
    command = add_command(commands, "plan", print_plan, light=True)
    what = "assume N parallel training runs (default: one per GPU, or one per core without GPUs)"
    add_number(command, "--devices", what)
    what = (
        "forecast for this kind of device (default: device of the records, or else of this machine)"
    )
    command.add_argument("--on", choices=("cpu", "gpu"), help=what)
    add_option(
        command, "--card", "NAME", "forecast for this GPU model, for example A100, L4 or H100"
    )
    what = (
        "measure the speed of this machine again, and time a few training updates of the models; "
        "both are otherwise cached for a day"
    )
    add_flag(command, "--calibrate", what)
    add_json_option(command)
    command = add_command(commands, "validate", validate_study, light=True)
    add_flag(
        command, "--config-only", "check only the config, and not the data and models that it names"
    )
    what = (
        "delete the cached probes of endpoints, so that each is probed before its next evaluation"
    )
    add_flag(command, "--probe-again", what)
    add_json_option(command)


def start_demo(args: argparse.Namespace) -> None:
    """Write the demo study into an empty folder and run it there (a few minutes, offline)."""
    from tasktransfer.cli.demo_study import run_demo, write_demo
    from tasktransfer.designs import load_config

    write_demo(args.folder)
    run_demo(args.folder, args.cores, dry_run=args.dry_run)
    if args.dry_run:
        print(f"{args.folder}: The study was written. Run `snakemake --cores all` in this folder.")
    else:
        results = args.folder / load_config(args.folder / "config.yaml").results
        print(f"figures and tables: {results / 'figures'}")
        print(f"report: {results / 'report.html'}")


def print_plan(args: argparse.Namespace) -> None:
    """Count a study's runs, and estimate its hours, wall time and disk space."""
    from tasktransfer.operate.forecast.estimate import Estimates
    from tasktransfer.operate.forecast.rates import find_card_rates, measure_machine_rates
    from tasktransfer.operate.forecast.timed_updates import time_model_updates
    from tasktransfer.operate.overview import summarise_study
    from tasktransfer.operate.overview_text import as_text

    card = None if args.card is None else find_card_rates(args.card)
    if card is not None and (args.on == "cpu" or args.calibrate):
        other = "--calibrate" if args.calibrate else "--on cpu"
        raise ConfigError(
            f"--card {args.card}: The option cannot be combined with {other}. Remove one of the "
            "two options."
        )
    study, design = open_design(args, need_inputs=False)
    device = "cuda" if card else DEVICES[args.on]
    estimates = Estimates(study, device)
    rates = card or measure_machine_rates(estimates.device, again=args.calibrate)
    if args.calibrate:
        time_model_updates(Estimates(study, device, rates), again=True)
    result = summarise_study(study, args.devices, rates, device)
    result["lacking"] += design.shortages(study)
    print_result(result, as_text, as_json=args.json)
    for line in () if args.json else design.notes(study.config):
        print(escape_line(line))


def validate_study(args: argparse.Namespace) -> None:
    """Check a config file, and the data and models that its runs need."""
    from tasktransfer.designs import check_shortages
    from tasktransfer.operate.endpoints import (
        delete_probes,
        describe_endpoints,
        format_endpoints,
        require_allowed_endpoints,
    )
    from tasktransfer.operate.missing_inputs import require_available_data, require_available_inputs

    study, design = open_design(args, need_inputs=False)
    if not args.config_only:
        require_available_inputs(study)
        require_available_data(study)
        check_shortages(study)
    skipped = ["data and models (--config-only)"] if args.config_only else []
    not_checked = [*skipped, *study.absent]
    if not args.json:
        for text in not_checked:
            print(f"not checked: {escape_text(text)}")
    if not args.config_only:
        _validate_models(study)
        _validate_prompts(study)
    require_allowed_endpoints(study.config)
    name, notes = study.config.study, [*design.notes(study.config)]
    if args.probe_again:
        notes += delete_probes(study.config)
    endpoints = describe_endpoints(study.config)
    result = {
        "config": args.config,
        "study": name,
        "not_checked": not_checked,
        "notes": notes,
        "endpoints": endpoints,
    }
    texts = [f"{args.config}: ok, study {name}", *notes, *format_endpoints(endpoints)]
    lines = map(escape_line, texts)
    print_result(result, lambda _: "".join(f"{line}\n" for line in lines), as_json=args.json)


def _validate_models(study: Study) -> None:
    """Check all checkpoints on this disk. Models on the Hub are skipped.

    Raises:
        ModelError: a checkpoint does not fit; the message has one line per model.
    """
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
    """Render example prompts of prompted models on this disk, and print notes on them."""
    from tasktransfer.errors import print_note

    cases: dict[tuple[str, Any, bool], ModelSpec] = {}
    for asked, model in _collect_prompted_models(study):
        if Path(study.get_checkpoint_source(model.name)).is_dir():
            cases[model.name, asked.get("chat", "auto"), bool(asked["shots"])] = model
    notes: list[str] = []
    for (name, chat, examples), model in cases.items():
        from tasktransfer.evaluation.prompting.load import check_prompts

        result = check_prompts(model, study.get_checkpoint_source(name), chat, examples=examples)
        notes += [f"model {name}: {note}" for note in result]
    for note in dict.fromkeys(notes):
        print_note(note)


def _collect_prompted_models(study: Study) -> Iterator[tuple[Mapping[str, Any], ModelSpec]]:
    """Yield the prompt settings and the model of each evaluation with a local prompted model."""
    from tasktransfer.core.nodes import Outcome

    for node in study.plan.evaluations:
        model = node.of.model if isinstance(node.of, Outcome) else None
        if node.asked is not None and model is not None and not model.served:
            yield node.asked, model


def check_checkpoint(model: ModelConfig, start: str) -> None:
    """Raise ModelError if a checkpoint's weights, tokenizer, family and study do not fit together.

    Args:
        start: folder or hub name of the checkpoint.
    """
    from tasktransfer.models.check_model import check_model
    from tasktransfer.results.revisions import get_hub_revision, is_hub_name

    revision = get_hub_revision(model) if is_hub_name(start) else None
    check_model(
        model.checkpoint_family, start, revision, model.max_length, make_note_callback(model)
    )


def make_note_callback(model: ModelConfig) -> Callable[[str], None]:
    """Return a callback that prints missing and unused weights of a checkpoint."""
    return lambda text: print(f"model {model.name}: {text}", file=sys.stderr)
