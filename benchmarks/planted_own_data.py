"""Check that a study of own dialogues finds a helpful source, and reports "none" without one.

    python benchmarks/planted_own_data.py FOLDER [WORLDS [WORLD ...]]

Generates worlds (default: 5) as JSON lines and runs each with Snakemake on the tiny model, as in
docs/your-own-data.md. A world has a target (Tickets/intent) with few labelled dialogues, and a
dataset with two sources. The target's label depends on words, only some of which occur in its
training split.

- ``helped``: the source ``kin`` has other label names for the same words, and contains all words.
- ``unhelped``: both sources are about other words.
- ``scrambled``: like helped, but kin's labels are assigned to its dialogues at random. A method
  that finds a source here reports false positives.
- ``crippled``: like helped, but the target is trained for only 6 updates. The report must begin
  by saying that the baseline has not learned its task, and recommend no source.

In the first three worlds, the target is trained for 120 updates. Even so, the baseline often scores
below TF-IDF with logistic regression, because the tiny model is hardly pretrained.

Prints the answer of each report, and how often it is right. WORLD is one of the four (default:
all). FOLDER/answers.csv contains the answers, and FOLDER/cells.csv the differences behind them
(tests/fixtures has copies).
Existing worlds are not run again. It takes a quarter of an hour on two idle cores.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import chdir
from itertools import islice, product
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from tasktransfer.cli.demo_study import SNAKEFILE, WORKFLOW
from tasktransfer.datasets import PACKAGE_DATASETS, replace_declared_datasets
from tasktransfer.designs import open_study
from tasktransfer.designs.transfer.commands import ABOUT, FRAMES
from tasktransfer.designs.transfer.report.answer import write_answer
from tasktransfer.results.frame_files import read_frames

WORLDS = ("helped", "unhelped", "scrambled", "crippled")
FOUND = "For Tickets/intent, train on Sources/kin first"
NONE = "For Tickets/intent, none of the 2 sources helps significantly"
TRUTH = {"helped": FOUND, "unhelped": NONE, "scrambled": NONE}
"""World → beginning of the correct sentence on sources, if the baseline has learned."""
RECOMMENDED = "use transfer from Sources/kin"
"""Part of the sentence on methods, if the transfer is better than all references."""
UNLEARNED = "The baseline has not learned"
EPOCHS, FEW_EPOCHS = 40, 2
"""Epochs on the target, with 3 updates each: in general, and in the crippled world."""

COLUMNS = [
    *("world", "world_seed", "dataset", "model", "algorithm", "source", "target", "n_sources"),
    *("n_seeds", "dialogues", "score", "baseline_score", "delta", "low", "high", "standard_error"),
    *("test_error", "degrees", "p", "q", "significant"),
]
CELLS = "results/tables/cells.parquet"

GROUPS = 4
NOUNS = """
anchor baker banjo barrel basket bicycle blanket blender book bookcase bottle bridge brother
bucket cabin cabinet camera candle canoe captain carpet clock coffee compass cooking cousin crayon
curtain cushion dolphin doormat drawer duchess engine falcon feather fishing floor flatmate
fountain friend garden globe guitar hammer hamster harbor helmet hiking horse husband jacket
jigsaw kettle kitchen kite ladder lamp lantern letter locket magnet mailman marble market mirror
monk music napkin necklace novel painting parrot peach pen pencil pillow pilot pine pinecone
pirate plate poet postcard pretzel property pumpkin puppet question radio raft rat ribbon river
rocket sailor saddle sandal sandwich school scooter sewing shopping shovel smoke sofa sparrow
spatula sponge spouse stapler storm stranger sweater table tea teapot ticket tiger toaster tourism
town train tripod trophy trumpet tulip turkey turtle umbrella violin visitor walk wall wallet
walnut whistle wife window winter wizard work zipper
"""
"""Words that are single tokens for the tiny model's tokenizer."""
OF_SUBJECT = {"intent": 64, "mood": 20, "weather": 20}
"""Number of words per subject, divided equally between its groups; the rest is small talk."""
SIZES = {
    "Tickets": {"train": 48, "dev": 32, "test": 200},
    "Sources": {"train": 320, "dev": 60, "test": 40},
}
SUBJECTS = {"helped": "kin", "scrambled": "kin", "unhelped": "weather", "crippled": "kin"}
"""World → its first source; the second source is mood."""


def sample_words(seed: int) -> dict[str, list[str]]:
    """Return subject → words; word n belongs to group n modulo the number of groups."""
    words = iter(random.Random(seed).sample(NOUNS.split(), len(NOUNS.split())))
    found = {subject: [*islice(words, count)] for subject, count in OF_SUBJECT.items()}
    return found | {"kin": found["intent"], "small talk": [*words]}


def generate_dialogues(dataset: str, split: str, world: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the dialogues of a split, with two words of each subject in any order, in two turns."""
    chance, words = random.Random(f"{dataset} {split} {seed}"), sample_words(seed)
    subjects = ["intent"] if dataset == "Tickets" else [SUBJECTS[world], "mood"]
    for number in range(SIZES[dataset][split]):
        labels, said = dict[str, str](), chance.sample(words["small talk"], 2)
        for subject in subjects:
            group = chance.randrange(GROUPS)
            said += chance.sample(words[subject][group::GROUPS], 2)
            labels[subject] = f"{subject}-{group}"
        chance.shuffle(said)
        if world == "scrambled" and "kin" in labels:
            labels["kin"] = f"kin-{chance.randrange(GROUPS)}"
        half = len(said) // 2
        turns = [
            {"role": "customer", "content": " ".join(said[:half])},
            {"role": "agent", "content": " ".join(said[half:])},
        ]
        yield {"id": f"{dataset}-{split}-{number}", "messages": turns, **labels}


def build_config(world: str, seed: int, seeds: int) -> dict[str, Any]:
    """Return the config of a world's study, in the folder that ``write_study`` fills."""

    def build_dataset(dataset: str, tasks: Sequence[str]) -> dict[str, Any]:
        return {
            "files": {split: f"./{dataset}.{split}.jsonl" for split in SIZES[dataset]},
            "dialogue": {"turns": "messages", "text": "content", "speaker": "role", "id": "id"},
            "tasks": {t: {"kind": "dialogue_classification", "label": t} for t in tasks},
        }

    sources = [SUBJECTS[world], "mood"]
    return {
        "study": f"planted: {world}, world {seed}",
        "datasets": {
            "Tickets": build_dataset("Tickets", ["intent"]),
            "Sources": build_dataset("Sources", sources),
        },
        "targets": ["Tickets/intent"],
        "sources": ["Sources/*"],
        "models": [{"name": "tiny", "family": "encoder", "checkpoint": "tiny", "max_length": 64}],
        "algorithms": ["baseline", "pretrain_finetune"],
        "references": ["most_frequent", "tfidf_logistic", "frozen_logistic", "nearest_neighbour"],
        "seeds": seeds,
        "training": {
            "epochs": {"Tickets": FEW_EPOCHS if world == "crippled" else EPOCHS, "Sources": 8},
            "learning_rate": 0.001,
            "batch_size": 16,
        },
    }


def write_study(folder: Path, world: str, seed: int, seeds: int) -> None:
    """Write the files and the study of a world."""
    folder.mkdir(parents=True, exist_ok=True)
    for dataset, sizes in SIZES.items():
        for split in sizes:
            rows = generate_dialogues(dataset, split, world, seed)
            lines = "".join(f"{json.dumps(row)}\n" for row in rows)
            (folder / f"{dataset}.{split}.jsonl").write_text(lines, encoding="utf-8")
    (folder / "config.yaml").write_text(yaml.safe_dump(build_config(world, seed, seeds)))
    (folder / "Snakefile").write_text(SNAKEFILE)
    profile = folder / "profiles" / "default" / "config.yaml"
    profile.parent.mkdir(parents=True, exist_ok=True)
    profile.write_text((WORKFLOW / "profiles" / "default" / "config.yaml").read_text("utf-8"))


def copy_shared_files(done: Path, folder: Path) -> None:
    """Copy the tiny model and its tiny world, which all worlds share."""
    same = [f"data/instances/{dataset.name}-*" for dataset in PACKAGE_DATASETS]
    for pattern in ("models", "data/tiny-world-*", *same):
        for made in (done / "results").glob(pattern):
            shutil.copytree(
                made, folder / made.relative_to(done), symlinks=True, dirs_exist_ok=True
            )


def run_study(folder: Path, *targets: str, cores: int = 2) -> None:
    """Run a folder's study to its report, or to some of its files."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(
        [sys.executable, "-m", "snakemake", *targets, "--cores", str(cores), "--quiet"],
        cwd=folder,
        env={**os.environ, "PATH": path, "HF_HUB_OFFLINE": "1"},
        check=True,
    )


def read_answer(folder: Path) -> tuple[str, pd.DataFrame]:
    """Return the answer of a finished study's report, and the cells behind it."""
    try:
        with chdir(folder):
            frames = read_frames(open_study("config.yaml"), FRAMES, ABOUT)
            return " ".join(write_answer(frames)), frames["cells"]
    finally:
        replace_declared_datasets(())


def is_right(world: str, answer: str) -> bool:
    """Return whether an answer recommends the source of the helped world, and no other source."""
    is_recommended = "train on Sources/" in answer or "use transfer from" in answer
    if world == "helped":
        return FOUND in answer or RECOMMENDED in answer
    return not is_recommended and (world != "crippled" or answer.startswith(UNLEARNED))


def main(folder: Path, worlds: int = 5, kinds: Sequence[str] = WORLDS, seeds: int = 3) -> None:
    """Write and run every missing world, and print the answers."""
    tables, answers, first, right = [], [], None, Counter[str]()
    for number, kind in product(range(worlds), kinds):
        place = folder / f"{kind}-{number}"
        if not (place / CELLS).exists():
            write_study(place, kind, number, seeds)
            if first is not None:
                copy_shared_files(first, place)
            run_study(place, CELLS)
        first = first or place
        said, cells = read_answer(place)
        right[kind] += is_right(kind, said)
        print(f"{kind}, world {number}: {said}", flush=True)
        answers.append({"world": kind, "world_seed": number, "answer": said})
        pd.DataFrame(answers).to_csv(folder / "answers.csv", index=False)
        tables.append(cells.assign(world=kind, world_seed=number))
        pd.concat(tables)[COLUMNS].to_csv(folder / "cells.csv", index=False, float_format="%.6g")
    for kind in kinds:
        print(f"{kind}: right in {right[kind]} of {worlds}")


if __name__ == "__main__":
    main(
        Path(sys.argv[1]),
        *(int(number) for number in sys.argv[2:3]),
        **({"kinds": tuple(sys.argv[3:])} if sys.argv[3:] else {}),
    )
