"""Example command lines, which end the help of every command."""

from __future__ import annotations

import argparse
from itertools import islice

from tasktransfer.cli.parsers import HelpFormatter, iterate_parsers

EXAMPLES: dict[str, tuple[str, ...]] = {
    "demo": ("tasktransfer demo --cores 2",),
    "plan": ("tasktransfer plan study.yaml --on gpu --card A100",),
    "validate": ("tasktransfer validate study.yaml",),
    "run": (
        "tasktransfer run workflow/presets/demo.yaml --cores 2",
        "tasktransfer run study.yaml --gpus 4 --set training.epochs=2",
        "tasktransfer run study.yaml -- --rerun-incomplete --forcerun draw",
    ),
    "ls": ("tasktransfer ls presets",),
    "cp": ("tasktransfer cp demo study.yaml",),
    "doctor": ("tasktransfer doctor --config study.yaml",),
    "completion": ("tasktransfer completion bash > ~/.tasktransfer-completion",),
    "data fetch": (
        "tasktransfer data fetch feta --out releases",
        "tasktransfer data fetch multiwoz --out releases",
    ),
    "data check": ("tasktransfer data check train.jsonl test.jsonl --name Tickets",),
    "init": ("tasktransfer init --file tickets.jsonl --label priority --model tiny --hours 2",),
    "world": ("tasktransfer world --out releases/tiny --dialogues 240",),
    "data prepare": ("tasktransfer data prepare study.yaml --dataset Friends --out cache/Friends",),
    "data stats": ("tasktransfer data stats study.yaml --out table1",),
    "data reference": ("tasktransfer data reference study.yaml --out reference.parquet",),
    "tiny-model": ("tasktransfer tiny-model study.yaml --model tiny-bert --out models/tiny-bert",),
    "encode": (
        "tasktransfer encode study.yaml --dataset Friends --model tiny-bert --out encoded/Friends",
    ),
    "train": ("tasktransfer train study.yaml --node 320e35dcb3e7",),
    "derive": ("tasktransfer derive study.yaml --node 320e35dcb3e7",),
    "fit": ("tasktransfer fit study.yaml --node 320e35dcb3e7 --threads 2",),
    "evaluate": ("tasktransfer evaluate study.yaml --node 320e35dcb3e7",),
    "pilot": ("tasktransfer pilot study.yaml --gpus 4 --partition gpu --time 12:00:00 --submit",),
    "records": ("tasktransfer records study.yaml --model tiny-bert --seed 1",),
    "status": ("tasktransfer status study.yaml --watch 60",),
    "merge": ("tasktransfer merge other/results --config study.yaml --dry-run",),
    "pack": ("tasktransfer pack study.yaml --out study.parquet --by 'Our lab'",),
    "gc": ("tasktransfer gc --config a.yaml b.yaml",),
    "import": ("tasktransfer import shards --config study.yaml --figures",),
    "export": ("tasktransfer export study.yaml --eee --out every_eval_ever --by 'Our lab'",),
    "collect": ("tasktransfer collect study.yaml",),
    "choose": ("tasktransfer choose study.yaml",),
    "statistics": ("tasktransfer statistics study.yaml",),
    "figures": (
        "tasktransfer figures study.yaml",
        "tasktransfer figures study.yaml --style paper",
    ),
    "report": ("tasktransfer report study.yaml",),
    "regret": ("tasktransfer regret --matrix scores.csv --k 1 3",),
    "explain": (
        "tasktransfer explain table3 Persona_USR panel --config panel.yaml",
        "tasktransfer explain 320e35dcb3e7 --config study.yaml",
    ),
    "submit": ("tasktransfer submit study.yaml --dataset Friends --model tiny-bert",),
    "score": ("tasktransfer score Friends-tiny-bert.zip --data releases/feta",),
    "leaderboard": ("tasktransfer leaderboard submissions --data releases/feta --out board",),
    "judgements": ("tasktransfer judgements --ratings ratings.csv --out human",),
    "rate": ("tasktransfer rate responses.jsonl --config panel.yaml > rated.jsonl",),
    "items": ("tasktransfer items panel.yaml --out items.jsonl",),
    "replies": ("tasktransfer replies study.yaml --instances 3",),
    "sheets": (
        "tasktransfer sheets study.yaml --out human --models Gold ret-base gen-base",
        "tasktransfer sheets study.yaml --out human --kind pairs --instances 20 --raters 6",
    ),
    "read-sheets": (
        "tasktransfer read-sheets rater-*.jsonl --key human/key.json --out ratings.csv",
    ),
    "pairs": ("tasktransfer pairs panel.yaml --out pairs",),
    "errors": ("tasktransfer errors study.yaml --task intent --out errors.csv",),
    "learning-curve": ("tasktransfer learning-curve study.yaml --task intent",),
    "export-model": ("tasktransfer export-model study.yaml --out my-model",),
    "predict": ("tasktransfer predict my-model new.jsonl --out predictions.jsonl --top-k 3",),
    "recommend": ("tasktransfer recommend study.yaml --target Friends/emory_emotion --hours 1",),
}
"""Command → its examples."""


def add_examples(parser: argparse.ArgumentParser) -> None:
    """Add examples to each command's help."""
    for name, command in islice(iterate_parsers(parser), 1, None):
        command.formatter_class = HelpFormatter
        if examples := EXAMPLES.get(name):
            title = "example:" if len(examples) == 1 else "examples:"
            command.epilog = "\n  ".join((title, *examples))
