"""Commands for the model that a study gives: ``export-model`` and ``predict``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tasktransfer.cli.options import (
    add_command,
    add_number,
    add_option,
    add_out,
    add_threads,
    open_design,
    parse_file,
)

TRAIN_ON = ("train", "train+dev")


def add_commands(commands: Any) -> None:
    """Add ``export-model`` and ``predict``."""
    command = add_command(commands, "export-model", export_model)
    what = "task, as DATASET/TASK or TASK (default: the only one of your own files)"
    add_option(command, "--task", "TASK", what)
    what = (
        "baseline, an algorithm, an algorithm with its sources (pretrain_finetune:CRE), or a "
        "reference (default: the recommended method, or else the best one on dev)"
    )
    add_option(command, "--method", "METHOD", what)
    add_option(
        command, "--model", "NAME", "name of a model in the config (default: the best on dev)"
    )
    what = (
        "train, or train+dev to fit a reference again on both splits; its scores stay those of the "
        "model without dev (default: train)"
    )
    add_option(command, "--train-on", "SPLITS", what, choices=TRAIN_ON, default=TRAIN_ON[0])
    add_out(command, "folder to write")
    add_threads(command)
    command = add_command(commands, "predict", predict, config=False)
    add_option(command, "folder", "DIR", "folder that `export-model` wrote", type=Path)
    what = "file of dialogues in a format that `data check` reads; labels are not needed"
    add_option(command, "file", "FILE", what, type=Path)
    what = "file to write, as JSON lines (default: standard output)"
    add_option(command, "--out", "FILE", what, type=parse_file)
    add_number(command, "--top-k", "also write the K most probable labels", default=0)
    what = "probability below which the label is null, to be given by a person (default: 0)"
    add_option(command, "--min-probability", "P", what, type=parse_probability, default=0.0)
    what = "number of inputs that are computed together (default: %(default)s)"
    add_number(command, "--batch-size", what, default=32)


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
        raise argparse.ArgumentTypeError(f"found {text[:20]!r}, expected a number from 0 to 1")
    return value


def export_model(chosen: argparse.Namespace) -> None:
    """Write the best model of a finished study into a folder for use elsewhere."""
    from tasktransfer.jobs.export_card import format_summary
    from tasktransfer.jobs.export_model import ExportRequest, export_model

    study, design = open_design(chosen)
    request = ExportRequest(
        *(chosen.task, chosen.method, chosen.model, chosen.threads),
        with_dev=chosen.train_on == TRAIN_ON[1],
    )
    exported = export_model(study, design, chosen.out, request)
    print(format_summary(exported, chosen.out))


def predict(chosen: argparse.Namespace) -> None:
    """Predict the labels of a file of dialogues with an exported model."""
    from tasktransfer.jobs.predict_job import PredictionRequest, predict_file

    request = PredictionRequest(chosen.top_k, chosen.min_probability, chosen.batch_size)
    predict_file(chosen.folder, chosen.file, chosen.out, request)
