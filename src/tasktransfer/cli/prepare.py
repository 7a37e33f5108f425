"""Commands that prepare data and models."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasktransfer.cli.fetch_data import add_fetch_command
from tasktransfer.cli.options import (
    add_command,
    add_flag,
    add_json_option,
    add_option,
    add_out_option,
    add_threads_option,
    find_node,
    open_study,
    open_study_with_design,
    parse_file,
    print_result,
)
from tasktransfer.cli.own_data import add_data_commands
from tasktransfer.errors import ConfigError, escape_line, suggest_name
from tasktransfer.files import Maker, json_text, remove_partial_files
from tasktransfer.files.locks import lock_path

if TYPE_CHECKING:
    from tasktransfer.results.study import Study


def add_commands(commands: Any) -> None:
    """Add the commands ``world``, ``tiny-model``, ``encode`` and those of ``data``."""
    command = add_command(commands, "world", generate_tiny_world, config=False)
    add_out_option(command, "write the tiny world into this folder")
    what = "generate the world with random seed N (default: 0)"
    add_option(command, "--seed", "N", what, type=int, default=0)
    what = "generate N dialogues per dataset (default: 240)"
    add_option(command, "--dialogues", "N", what, type=int, default=240)
    group = commands.add_parser("data", help="check, download, prepare or describe dialogues")
    parts = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
    command = add_command(parts, "prepare", prepare_dataset)
    add_option(
        command, "--dataset", "NAME", "read the dataset with this name in the config", required=True
    )
    what = "read all dialogues of the tiny world, on which tiny models are pre-trained"
    add_flag(command, "--tiny-world", what)
    add_out_option(command, "write the instances into this folder")
    command = add_command(parts, "stats", print_data_statistics)
    what = "write the tables into this folder as CSV and Parquet (default: only print them)"
    add_out_option(command, what, required=False)
    add_json_option(command)
    command = add_command(parts, "reference", print_reference_scores)
    add_option(command, "--out", "FILE", "write the scores to this Parquet file", type=parse_file)
    add_json_option(command)
    add_data_commands(parts)
    add_fetch_command(parts)
    command = add_command(commands, "tiny-model", make_checkpoint)
    add_option(
        command, "--model", "NAME", "create the model with this name in the config", required=True
    )
    add_out_option(command, "write the checkpoint into this folder")
    add_threads_option(command)
    command = add_command(commands, "encode", encode_dataset_for_model)
    data = command.add_mutually_exclusive_group(required=True)
    data.add_argument(
        "--dataset", metavar="NAME", help="encode the dataset with this name in the config"
    )
    what = "encode derived data, named by the first 12 digits of the node's digest"
    data.add_argument("--node", metavar="DIGEST", help=what)
    add_option(
        command,
        "--model",
        "NAME",
        "encode for the model with this name in the config",
        required=True,
    )
    add_out_option(command, "write the token ids into this folder")


def generate_tiny_world(args: argparse.Namespace) -> None:
    """Generate the tiny world with small synthetic versions of the datasets."""
    from tasktransfer.datasets.tiny_world import generate_releases

    generate_releases(args.out, seed=args.seed, dialogues=args.dialogues)


@contextmanager
def _lock_folder(
    path: Path, named: str, maker: Maker, complete: str, is_up_to_date: Callable[[], bool]
) -> Iterator[bool]:
    """Lock a folder for writing, and yield whether it still has to be written.

    Another workflow on the same results, or a process that outlived its workflow, may be writing.

    Args:
        named: the study's own path for the folder, which contains a digest of its inputs. A folder
            at this path has the right inputs. A folder elsewhere may have other inputs.
        maker: the kind of folder, which recognises its folders by a manifest.
        complete: name of the file that a complete folder contains.
        is_up_to_date: return whether the existing folder was made from the requested inputs.
    """

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    with lock_path(path, say):
        is_named = path.resolve() == Path(named).resolve()
        there = (path / complete).is_file() and (is_named or is_up_to_date())
        if there:
            say(f"{path}: The folder is complete, so nothing is written.")
        remove_partial_files(path.parent, path.name)
        if is_named and maker.read_object(path) is None and not there:
            # Snakemake removes a job's outputs before the job starts: remove the other files, too.
            shutil.rmtree(path, ignore_errors=True)
        yield not there


def prepare_dataset(args: argparse.Namespace) -> None:
    """Read, check and cache the instances of one dataset."""
    from tasktransfer.data.cache import MAKER, MANIFEST, cache_dataset
    from tasktransfer.datasets import DATASETS, TINY_PARTS

    dataset = args.dataset
    study = open_study(args, need_inputs=False)
    offered, whose = (
        (TINY_PARTS, "the tiny world") if args.tiny_world else (study.revisions.data, args.config)
    )
    if dataset not in offered:
        raise ConfigError(
            f"--dataset {dataset}: There is no dataset with this name in "
            f"{whose}.{suggest_name(dataset, offered)} Choose one of {', '.join(offered)}."
        )
    reader = DATASETS[dataset].reader
    source = study.tiny_world if args.tiny_world else study.get_release(dataset)
    few_sample = study.config.data.few_sample and not args.tiny_world

    def is_up_to_date() -> bool:
        wanted = {"dataset": dataset, "few_sample": few_sample, "reader_version": reader.version}
        noted = MAKER.read_object(args.out) or {}
        same = noted.items() >= wanted.items()
        return same and noted.get("revision") == reader.revision(Path(source), None)

    named = (study.get_tiny_instances_folder if args.tiny_world else study.get_instances_folder)(
        dataset
    )
    with _lock_folder(args.out, named, MAKER, MANIFEST, is_up_to_date) as needed:
        if needed:
            if not args.tiny_world:
                _generate_tiny_dataset(study, dataset)
            for line in cache_dataset(dataset, source, few_sample, args.out).told:
                print(escape_line(f"{dataset}: {line}"), file=sys.stderr)


def _generate_tiny_dataset(study: Study, dataset: str) -> None:
    """Generate a tiny dataset that has its own folder, unless it exists."""
    from tasktransfer.datasets import DATASETS
    from tasktransfer.datasets.tiny_world import MAKER, generate_release
    from tasktransfer.results.revisions import get_own_tiny_version, is_generated

    if not is_generated(study.config, dataset) or not get_own_tiny_version(dataset):
        return
    folder, made_from = Path(study.get_tiny_part_folder(dataset)), study.config.data.tiny_world
    if MAKER.read_object(folder) is None:
        generate_release(
            DATASETS[dataset], folder, seed=made_from.seed, dialogues=made_from.dialogues
        )


def print_data_statistics(args: argparse.Namespace) -> None:
    """Print Table 1 and a summary of the lengths, and write both with --out."""
    from tasktransfer.designs.transfer.tables import data_report

    study = open_study(args)
    folders = _prepare_datasets(study)
    result = data_report.as_json(folders) if args.json else folders
    print_result(result, data_report.as_text, as_json=args.json)
    if args.out:
        data_report.write_data_tables(folders, args.out)


def print_reference_scores(args: argparse.Namespace) -> None:
    """Print each task's scores of reference answers without a model, and write them with --out."""
    import pandas as pd

    from tasktransfer.designs.transfer.config import get_transfer_config
    from tasktransfer.designs.transfer.reference import (
        compute_reference_rows,
        write_reference_table,
    )
    from tasktransfer.present.html import to_records

    why = "only transfer studies have reference scores without a model"
    study = open_study_with_design("transfer", why, args)
    config, folders = get_transfer_config(study), _prepare_datasets(study)
    say = (lambda text: print(text, file=sys.stderr)) if args.json else print
    frames = [
        compute_reference_rows(
            folder, dataset.tasks, config.get_training_hyperparameters(dataset.name), progress=say
        )
        for dataset, folder in zip(config.datasets, folders, strict=True)
    ]
    table = pd.concat(frames, ignore_index=True)
    if args.json:
        print(json_text.encode(to_records(table), indent=2))
    if args.out:
        write_reference_table(table, args.out)


def make_checkpoint(args: argparse.Namespace) -> None:
    """Create a checkpoint folder of a tiny model, a built model or a converted GGUF file."""
    from tasktransfer.cli.describe import make_note_callback
    from tasktransfer.config import BUILT, TINY
    from tasktransfer.models import gguf
    from tasktransfer.training import build as building
    from tasktransfer.training.tiny import MAKER, build_tiny_model, describe_recipe

    study = open_study(args, need_inputs=False)
    model = study.get_model_config(args.model)
    if not model.is_created:
        raise ConfigError(
            f"{args.config}: The model {model.name} uses the checkpoint {model.checkpoint!r}. "
            f"This command creates only the checkpoints {TINY!r} and {BUILT!r}, and checkpoints "
            "from GGUF files. Choose another model."
        )
    named = study.get_created_model_folder(model.name)
    instances = [Path(folder) for folder in study.list_text_folders(named)]
    family, architecture = model.family, model.built
    if model.checkpoint != TINY:
        weights = study.revisions.models[args.model].weights
        maker = building.MAKER if architecture else gguf.MAKER
        with _lock_folder(
            args.out,
            named,
            maker,
            "config.json",
            lambda: _has_weights(maker, args.out, weights),
        ) as needed:
            if needed and architecture:
                labels = study.config.known_labels
                building.build_model_folder(architecture, instances, args.out, weights, labels)
            elif needed:
                from tasktransfer.config.places import expand_path

                file = expand_path(model.checkpoint)
                gguf.dequantise_checkpoint(
                    model.checkpoint_family, file, args.out, weights, make_note_callback(model)
                )
        return

    def is_up_to_date() -> bool:
        noted = MAKER.read_object(args.out)
        return noted is not None and noted == describe_recipe(family, instances)

    with _lock_folder(args.out, named, MAKER, "config.json", is_up_to_date) as needed:
        if needed:
            build_tiny_model(family, instances, args.out, args.threads)


def _has_weights(maker: Maker, folder: Path, weights: str) -> bool:
    return (maker.read_object(folder) or {}).get("weights") == weights


def encode_dataset_for_model(args: argparse.Namespace) -> None:
    """Check a model's checkpoint, and tokenise a dataset's cached instances for the model."""
    from tasktransfer.cli.describe import check_checkpoint
    from tasktransfer.core.identity import ENCODING_VERSION
    from tasktransfer.core.nodes import Data
    from tasktransfer.data.cache import read_manifest
    from tasktransfer.designs import check_shortages
    from tasktransfer.encoding.encode import (
        MAKER,
        build_identity,
        encode_dataset,
        list_truncation_warnings,
        select_answerable_tasks,
    )
    from tasktransfer.encoding.manifest import read_manifest as read_encoded
    from tasktransfer.jobs.inputs import get_cache
    from tasktransfer.operate.missing_inputs import require_available_data

    study = open_study(args, need_inputs=False)
    data = (
        study.get_released_data(args.dataset) if args.dataset else find_node(study, args.node, Data)
    )
    instances, tasks = get_cache(study, data), study.list_tasks(data)
    model = study.get_model_config(args.model)
    spec = study.revisions.models[model.name]
    named = study.get_encoded_folder(data, model.name)

    def is_up_to_date() -> bool:
        """Return whether the encoded folder fits the cached instances and has all tasks."""
        noted = MAKER.read_object(args.out) or {}
        cached = read_manifest(instances)
        of = build_identity(cached, spec.identity, study.fidelity)
        same = {"encoding": ENCODING_VERSION, **of}.items()
        wanted = {card.name for card in select_answerable_tasks(data.name, tasks, model.family)}
        return noted.items() >= same and wanted <= noted["max_answer_tokens"].keys()

    with _lock_folder(args.out, named, MAKER, MAKER.file, is_up_to_date) as needed:
        if needed:
            require_available_data(study, data.name)
            check_shortages(study)
            if model.has_checkpoint:
                check_checkpoint(model, study.get_checkpoint_source(model.name))
            encode_dataset(
                instances,
                data.name,
                tasks,
                study.get_checkpoint_source(model.name),
                study.get_hub_revision(model.name),
                model.family,
                model.max_length + data.longer_by,
                args.out,
                model.max_unknown_words,
                spec.identity,
                study.fidelity,
                (study.get_checkpoint_source(model.second), study.get_hub_revision(model.second))
                if model.second
                else None,
            )
            for line in list_truncation_warnings(read_encoded(args.out)):
                print(f"{model.name} {line}", file=sys.stderr)


def _prepare_datasets(study: Study) -> list[Path]:
    """Return the folders of cached instances, after preparing missing ones."""
    from tasktransfer.data.cache import cache_dataset
    from tasktransfer.datasets.tiny_world import generate_releases
    from tasktransfer.results.revisions import is_generated

    folders = [Path(study.get_instances_folder(dataset)) for dataset in study.config.dataset_names]
    data = study.config.data
    for dataset, folder in zip(study.config.dataset_names, folders, strict=True):
        if (folder / "manifest.json").exists():
            continue
        if is_generated(study.config, dataset) and not Path(study.tiny_world).exists():
            made_from = data.tiny_world
            generate_releases(
                Path(study.tiny_world), seed=made_from.seed, dialogues=made_from.dialogues
            )
        _generate_tiny_dataset(study, dataset)
        cache_dataset(dataset, study.get_release(dataset), data.few_sample, folder)
    return folders
