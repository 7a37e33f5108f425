"""Commands that make data and models ready."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasktransfer.cli.options import add_command, add_out, add_threads, open_study
from tasktransfer.locks import one_at_a_time

if TYPE_CHECKING:
    from tasktransfer.study import Study


def add_commands(commands: Any) -> None:
    """``world``, ``data prepare``, ``data stats``, ``tiny-model`` and ``encode``."""
    _data_commands(commands)
    _model_commands(commands)


def world(chosen: argparse.Namespace) -> None:
    """Generate the tiny world."""
    from tasktransfer.data.tiny_world import generate

    generate(chosen.out, seed=chosen.seed, dialogues=chosen.dialogues)


@contextmanager
def _making(place: Path, complete: str) -> Iterator[bool]:
    """Hold a folder that is named after its content; whether it has to be made.

    ``complete``: the file that a complete one holds. Another workflow on the same results, or a
    process that outlived its workflow, may be making it.
    """

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    with one_at_a_time(place, say):
        there = (place / complete).exists()
        if there:
            say(f"{place}: there already, nothing to do")
        for half in place.parent.glob(f".{place.name}.*.part"):
            shutil.rmtree(half, ignore_errors=True)  # of a process that was killed
        yield not there


def data_prepare(chosen: argparse.Namespace) -> None:
    """Read, check and cache the instances of one dataset."""
    from tasktransfer.data.cache import prepare

    study = open_study(chosen, need_inputs=False)
    source = study.tiny_world if chosen.tiny_world else study.release
    few_sample = study.config.data.few_sample and not chosen.tiny_world
    with _making(chosen.out, "manifest.json") as needed:
        if needed:
            prepare(chosen.dataset, source, few_sample, chosen.out)


def data_stats(chosen: argparse.Namespace) -> None:
    """Print Table 1 and a summary of the lengths; write both with ``--out``."""
    from tasktransfer.analysis import data_report

    study = open_study(chosen)
    folders = _prepared(study)
    print(data_report.as_text(folders), end="")
    if chosen.out:
        data_report.write(folders, chosen.out)


def tiny_model(chosen: argparse.Namespace) -> None:
    """Build and pre-train a tiny model."""
    from tasktransfer.models.tiny import build
    from tasktransfer.tasks import DATASETS

    study = open_study(chosen, need_inputs=False)
    instances = [Path(study.tiny_instances(dataset)) for dataset in DATASETS]
    with _making(chosen.out, "config.json") as needed:
        if needed:
            build(study.model(chosen.model).family, instances, chosen.out, chosen.threads)


def encode(chosen: argparse.Namespace) -> None:
    """Tokenise the cached instances of the study's tasks in a dataset for a model, whose checkpoint
    is checked first."""
    from tasktransfer.cli.describe import check_checkpoint
    from tasktransfer.lacking import refuse_lacking
    from tasktransfer.models.encode import encode_dataset

    study = open_study(chosen, need_inputs=False)
    model = study.model(chosen.model)
    with _making(chosen.out, "manifest.json") as needed:
        if needed:
            refuse_lacking(study, chosen.dataset)
            check_checkpoint(model)
            encode_dataset(
                Path(study.instances(chosen.dataset)),
                chosen.dataset,
                study.tasks(chosen.dataset),
                study.base_model(model.name),
                study.revision(model.name),
                model.family,
                model.max_length,
                chosen.out,
                model.max_unknown_words,
            )


def _prepared(study: Study) -> list[Path]:
    """The cached instances of the study's datasets; made now where they are not there."""
    from tasktransfer.data.cache import prepare
    from tasktransfer.data.tiny_world import generate

    folders = [Path(study.instances(dataset.name)) for dataset in study.config.datasets]
    data = study.config.data
    for dataset, folder in zip(study.config.datasets, folders, strict=True):
        if (folder / "manifest.json").exists():
            continue
        if data.generated and not Path(study.tiny_world).exists():
            made_from = data.tiny_world
            generate(Path(study.tiny_world), seed=made_from.seed, dialogues=made_from.dialogues)
        prepare(dataset.name, study.release, data.few_sample, folder)
    return folders


def _data_commands(commands: Any) -> None:
    command = add_command(commands, "world", world, config=False)
    add_out(command, "folder to write")
    command.add_argument("--seed", metavar="N", type=int, default=0, help="seed (default: 0)")
    command.add_argument(
        "--dialogues", metavar="N", type=int, default=240, help="per dataset (default: 240)"
    )
    group = commands.add_parser("data", help="prepare or describe the dialogues")
    parts = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
    command = add_command(parts, "prepare", data_prepare)
    command.add_argument("--dataset", metavar="NAME", required=True, help="DailyDialog or Friends")
    command.add_argument(
        "--tiny-world",
        action="store_true",
        help="all dialogues of the tiny world, whatever the study reads: for tiny models",
    )
    add_out(command, "folder of the cache")
    command = add_command(parts, "stats", data_stats)
    add_out(command, "folder to write the tables to as CSV and Parquet", required=False)


def _model_commands(commands: Any) -> None:
    command = add_command(commands, "tiny-model", tiny_model)
    command.add_argument("--model", metavar="NAME", required=True, help="a model of the study")
    add_out(command, "folder of the checkpoint")
    add_threads(command)
    command = add_command(commands, "encode", encode)
    command.add_argument("--dataset", metavar="NAME", required=True, help="DailyDialog or Friends")
    command.add_argument("--model", metavar="NAME", required=True, help="a model of the study")
    add_out(command, "folder of the token ids")
