"""The command line: thin commands over the library.

Every command imports what it needs when it runs, so that ``--help``, ``plan`` and the start of a
training are fast. A training takes its device before torch is imported.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tasktransfer import __version__
from tasktransfer.errors import ConfigError, TaskTransferError

if TYPE_CHECKING:
    from tasktransfer.stage import Stage
    from tasktransfer.study import Study

PROGRAM = "tasktransfer"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, or that of the error (see ``errors``)."""
    chosen = _parser().parse_args(arguments)
    try:
        chosen.command(chosen)
    except TaskTransferError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # The reader of a pipe (head, less) has seen enough. Python must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


# --- commands -----------------------------------------------------------------------------------


def plan(chosen: argparse.Namespace) -> None:
    """Count what a study amounts to."""
    from tasktransfer.overview import as_text, overview

    seen = overview(_study(chosen, need_inputs=False))
    print(json.dumps(seen, indent=2) if chosen.json else as_text(seen), end="\n" * chosen.json)


def validate(chosen: argparse.Namespace) -> None:
    """Check a config file; all of its problems are told at once."""
    from tasktransfer.config import load

    config = load(chosen.config, _overrides(chosen))
    print(f"{chosen.config}: ok, study {config.study}")


def world(chosen: argparse.Namespace) -> None:
    """Generate the tiny world."""
    from tasktransfer.data.tiny_world import generate

    generate(chosen.out, seed=chosen.seed, dialogues=chosen.dialogues)


def data_prepare(chosen: argparse.Namespace) -> None:
    """Read, check and cache the instances of one dataset."""
    from tasktransfer.data.cache import prepare

    study = _study(chosen, need_inputs=False)
    source = study.tiny_world if chosen.tiny_world else study.release
    few_sample = study.config.data.few_sample and not chosen.tiny_world
    prepare(chosen.dataset, source, few_sample, chosen.out)


def data_stats(chosen: argparse.Namespace) -> None:
    """Print Table 1 and a summary of the lengths; write both with ``--out``."""
    from tasktransfer.analysis import data_report

    study = _study(chosen)
    folders = _prepared(study)
    print(data_report.as_text(folders, synthetic=study.config.data.synthetic), end="")
    if chosen.out:
        data_report.write(folders, chosen.out, synthetic=study.config.data.synthetic)


def tiny_model(chosen: argparse.Namespace) -> None:
    """Build and pre-train a tiny model."""
    from tasktransfer.models.tiny import build
    from tasktransfer.tasks import DATASETS

    study = _study(chosen, need_inputs=False)
    instances = [Path(study.tiny_instances(dataset)) for dataset in DATASETS]
    build(study.model(chosen.model).family, instances, chosen.out, chosen.threads)


def encode(chosen: argparse.Namespace) -> None:
    """Tokenise the cached instances of a dataset for a model."""
    from tasktransfer.data.cache import read_manifest
    from tasktransfer.models.encode import encode_dataset

    study = _study(chosen, need_inputs=False)
    instances = Path(study.instances(chosen.dataset))
    found = read_manifest(instances).tasks
    complete = {t for t, splits in found.items() if all(c.samples for c in splits.values())}
    # Tasks that are studied are asked for in any case, so that a missing one is an error here.
    wanted = complete | study.tasks(chosen.dataset)
    model = study.model(chosen.model)
    encode_dataset(
        instances,
        chosen.dataset,
        sorted(wanted),
        study.base_model(model.name),
        study.revision(model.name),
        model.family,
        model.max_length,
        chosen.out,
    )


def train(chosen: argparse.Namespace) -> None:
    """Train one stage and write its record."""
    from tasktransfer.config import load
    from tasktransfer.plan import run_of
    from tasktransfer.training.device import device_pool, lease
    from tasktransfer.training.job import Job

    config = load(chosen.config, _overrides(chosen))
    stage = _stage(chosen.stage)
    run = run_of(stage)
    job = Job(
        stage=stage,
        run=(run.identity if run else None) if chosen.run is None else _json("--run", chosen.run),
        encoded=chosen.encoded,
        start=chosen.start,
        revision=chosen.revision,
        out=chosen.out,
        save_checkpoint=chosen.save_checkpoint,
        threads=chosen.threads,
        study=config.study,
        config_digest=config.digest,
        synthetic=config.data.synthetic,
    )
    with lease(device_pool()):
        from tasktransfer.training.run import train_stage

        train_stage(job)


def collect(chosen: argparse.Namespace) -> None:
    """Make the Parquet tables from the records that are there."""
    from tasktransfer.analysis.tables import collect as collect_tables

    study = _study(chosen)
    tables = Path(study.tables)
    plan_file = _write_plan_file(study, tables, single_source=False)
    frames, _ = collect_tables(Path(study.config.results), plan_file, tables)
    print(f"{tables}: {len(frames.runs):,} runs, {len(frames.missing):,} missing")
    if chosen.complete and len(frames.missing):
        first = frames.missing.iloc[0]
        raise ConfigError(
            f"{tables}: {len(frames.missing)} planned runs have no usable record, the first: "
            f"{first['path']} ({first['reason']}); run snakemake, or collect without --complete"
        )


def select_sources(chosen: argparse.Namespace) -> None:
    """Pick the multi-source targets and their sources from the single-source results."""
    from tasktransfer.analysis.select_sources import select_from_tables
    from tasktransfer.analysis.tables import collect as collect_tables

    study = _study(chosen)
    tables = Path(study.tables) / "single-source"
    plan_file = _write_plan_file(study, tables, single_source=True)
    collect_tables(Path(study.config.results), plan_file, tables)
    asked = study.config.multi_source
    out = Path(study.selection_file)
    for item in select_from_tables(
        tables, out, asked.targets_per_dataset, asked.sources_per_target
    ):
        print(f"{item['dataset']}: {' + '.join(item['sources'])} -> {item['target']}")


def figures(chosen: argparse.Namespace) -> None:
    """Draw figures and Table 2 from the tables."""
    from tasktransfer.analysis.figures import draw

    study = _study(chosen, need_inputs=False)
    for path in draw(Path(study.tables), Path(study.figures)):
        print(path)


# --- what commands share ------------------------------------------------------------------------


def _study(chosen: argparse.Namespace, *, need_inputs: bool = True) -> Study:
    from tasktransfer.study import open_study

    return open_study(chosen.config, _overrides(chosen), need_inputs=need_inputs)


def _overrides(chosen: argparse.Namespace) -> dict[str, Any]:
    """``--set a.b=value`` options as a nested mapping, values read as YAML."""
    result: dict[str, Any] = {}
    for option in chosen.set:
        key, equals, text = option.partition("=")
        if not (key and equals):
            raise ConfigError(
                f"--set {option}: write it as key=value, for example training.epochs=2"
            )
        *parents, last = key.split(".")
        place = result
        for parent in parents:
            place = place.setdefault(parent, {})
        try:
            place[last] = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigError(f"--set {option}: the value is not YAML ({error})") from error
    return result


def _json(option: str, text: str) -> Any:
    """JSON text, or the JSON of a file (``@file``)."""
    try:
        return json.loads(Path(text[1:]).read_text("utf-8") if text.startswith("@") else text)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{option}: not JSON ({error}); give JSON text or @file") from error


def _stage(text: str) -> Stage:
    from tasktransfer.stage import Stage

    value = _json("--stage", text)
    try:
        return Stage.from_json(value)
    except (KeyError, TypeError) as error:
        raise ConfigError(f"--stage: no stage ({error!r}); give what Stage.to_json made") from error


def _prepared(study: Study) -> list[Path]:
    """The cached instances of the study's datasets; made now where they are not there."""
    from tasktransfer.data.cache import prepare
    from tasktransfer.data.tiny_world import generate

    folders = [Path(study.instances(dataset.name)) for dataset in study.config.datasets]
    data = study.config.data
    for dataset, folder in zip(study.config.datasets, folders, strict=True):
        if (folder / "manifest.json").exists():
            continue
        if data.synthetic and not Path(study.tiny_world).exists():
            made_from = data.tiny_world
            generate(Path(study.tiny_world), seed=made_from.seed, dialogues=made_from.dialogues)
        prepare(dataset.name, study.release, data.few_sample, folder)
    return folders


def _write_plan_file(study: Study, folder: Path, *, single_source: bool) -> Path:
    from tasktransfer.records import replacing

    path = folder / "plan.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    wanted = study.single_source_plan if single_source else study.plan
    with replacing(path) as part:
        part.write_text(json.dumps(study.plan_file(wanted)), encoding="utf-8")
    return path


# --- the parser ---------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Few-sample task transfer in dialogue (the FETA benchmark). "
        "To run a whole study, use snakemake; these are its parts.",
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    command = _command(commands, "plan", plan)
    command.add_argument("--json", action="store_true", help="print JSON")
    _command(commands, "validate", validate)
    _data_commands(commands)
    _model_commands(commands)
    _train_command(commands)
    command = _command(commands, "collect", collect)
    command.add_argument(
        "--complete", action="store_true", help="fail if a planned run has no usable record"
    )
    _command(commands, "select-sources", select_sources)
    _command(commands, "figures", figures)
    return parser


def _command(
    commands: Any, name: str, function: Any, *, config: bool = True
) -> argparse.ArgumentParser:
    text = function.__doc__
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text[0].lower() + text[1:].rstrip("."), description=text
    )
    parser.set_defaults(command=function)
    if config:
        parser.add_argument(
            "--config",
            metavar="FILE",
            default="config.yaml",
            help="the study (default: %(default)s)",
        )
        parser.add_argument(
            "--set",
            metavar="KEY=VALUE",
            action="append",
            default=[],
            help="put a value in place of the file's, for example training.epochs=2; repeatable",
        )
    return parser


def _out(parser: argparse.ArgumentParser, what: str, *, required: bool = True) -> None:
    parser.add_argument("--out", metavar="DIR", type=Path, required=required, help=what)


def _threads(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--threads",
        metavar="N",
        type=_positive,
        default=1,
        help="CPU threads (default: %(default)s)",
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 1 or more")
    return int(text)


def _data_commands(commands: Any) -> None:
    command = _command(commands, "world", world, config=False)
    _out(command, "folder to write")
    command.add_argument("--seed", metavar="N", type=int, default=0, help="seed (default: 0)")
    command.add_argument(
        "--dialogues", metavar="N", type=int, default=240, help="per dataset (default: 240)"
    )
    group = commands.add_parser("data", help="prepare or describe the dialogues")
    parts = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
    command = _command(parts, "prepare", data_prepare)
    command.add_argument("--dataset", metavar="NAME", required=True, help="DailyDialog or Friends")
    command.add_argument(
        "--tiny-world",
        action="store_true",
        help="all dialogues of the tiny world, whatever the study reads: for tiny models",
    )
    _out(command, "folder of the cache")
    command = _command(parts, "stats", data_stats)
    _out(command, "folder to write the tables to as CSV and Parquet", required=False)


def _model_commands(commands: Any) -> None:
    command = _command(commands, "tiny-model", tiny_model)
    command.add_argument("--model", metavar="NAME", required=True, help="a model of the study")
    _out(command, "folder of the checkpoint")
    _threads(command)
    command = _command(commands, "encode", encode)
    command.add_argument("--dataset", metavar="NAME", required=True, help="DailyDialog or Friends")
    command.add_argument("--model", metavar="NAME", required=True, help="a model of the study")
    _out(command, "folder of the token ids")


def _train_command(commands: Any) -> None:
    command = _command(commands, "train", train)
    command.add_argument(
        "--stage", metavar="JSON", required=True, help="the stage as JSON, or @file"
    )
    command.add_argument(
        "--run",
        metavar="JSON",
        help="the run that it scores, as JSON, or @file, or null (default: read off the stage)",
    )
    command.add_argument(
        "--encoded", metavar="DIR", type=Path, required=True, help="folder of the token ids"
    )
    command.add_argument(
        "--start", metavar="CHECKPOINT", required=True, help="folder or hub name to start from"
    )
    command.add_argument("--revision", metavar="NAME", help="revision of a hub name")
    _out(command, "folder of record, predictions and checkpoint")
    command.add_argument(
        "--save-checkpoint", action="store_true", help="write the best epoch's weights"
    )
    _threads(command)


if __name__ == "__main__":
    sys.exit(main())
