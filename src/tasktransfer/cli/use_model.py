"""Commands for the model that a study gives: ``export-model`` and ``predict``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tasktransfer.cli.options import (
    add_command,
    add_flag,
    add_number,
    add_option,
    add_out_option,
    add_threads_option,
    open_design,
    parse_file,
)

TRAIN_ON = ("train", "train+dev")
SKIP_EMPTY = "skip turns and dialogues without text instead of reporting them as errors"
SKIP_BROKEN = (
    "skip lines and dialogues that cannot be read, and count them, instead of reporting them as "
    "errors"
)


def add_commands(commands: Any) -> None:
    """Add the commands ``export-model`` and ``predict``."""
    command = add_command(commands, "export-model", export_best_model)
    what = (
        "export a model of this task, DATASET/TASK or TASK (default: the only task of your own "
        "files)"
    )
    add_option(command, "--task", "TASK", what)
    what = (
        "export this method: baseline, an algorithm, an algorithm with its sources "
        "(pretrain_finetune:CRE), or a reference (default: the recommended method, or else the one "
        "with the best dev score)"
    )
    add_option(command, "--method", "METHOD", what)
    add_option(
        command,
        "--model",
        "NAME",
        "export this model of the config (default: the one with the best dev score)",
    )
    what = (
        "fit a reference on train, or again on train+dev; the exported scores are those of the "
        "model "
        "without dev (default: train)"
    )
    add_option(command, "--train-on", "SPLITS", what, choices=TRAIN_ON, default=TRAIN_ON[0])
    add_out_option(command, "write the model into this folder")
    add_threads_option(command)
    command = add_command(commands, "predict", predict_labels, config=False)
    add_option(
        command,
        "folder",
        "DIR",
        "predict with the model in this folder, which `export-model` wrote",
        type=Path,
    )
    what = (
        "read dialogues from this file, in any format that `data check` reads; labels are not "
        "needed"
    )
    add_option(command, "file", "FILE", what, type=Path)
    what = "write predictions to this file as JSON lines (default: standard output)"
    add_option(command, "--out", "FILE", what, type=parse_file)
    add_number(
        command,
        "--top-k",
        "write the N most probable labels, too (default: only the best)",
        default=0,
    )
    what = (
        "write null as the label if its probability is below P, so that a person decides "
        "(default: 0)"
    )
    add_option(command, "--min-probability", "P", what, type=parse_probability, default=0.0)
    what = "predict N inputs at a time (default: %(default)s)"
    add_number(command, "--batch-size", what, default=32)
    add_flag(command, "--skip-empty", SKIP_EMPTY)
    add_flag(command, "--skip-broken", SKIP_BROKEN)


def parse_probability(text: str) -> float:
    """Convert an option's text to a probability.

    Raises:
        argparse.ArgumentTypeError: it is not a number from 0 to 1.
    """
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"The value is {text[:20]!r}. Pass a number from 0 to 1.")
    return value


def export_best_model(args: argparse.Namespace) -> None:
    """Write the best model of a finished study into a folder for use elsewhere."""
    from tasktransfer.jobs.export_card import format_summary
    from tasktransfer.jobs.export_model import ExportRequest, export_model

    study, design = open_design(args)
    request = ExportRequest(
        *(args.task, args.method, args.model, args.threads),
        with_dev=args.train_on == TRAIN_ON[1],
    )
    exported = export_model(study, design, args.out, request)
    print(format_summary(exported, args.out))


def predict_labels(args: argparse.Namespace) -> None:
    """Predict the labels of the dialogues in a file with an exported model."""
    from tasktransfer.jobs.predict_job import PredictionRequest, predict_file

    request = PredictionRequest(
        *(args.top_k, args.min_probability, args.batch_size),
        skip_empty=args.skip_empty,
        skip_broken=args.skip_broken,
    )
    predict_file(args.folder, args.file, args.out, request)
