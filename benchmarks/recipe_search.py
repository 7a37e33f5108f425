"""Search for the hyperparameters of ``training.recipe: auto``, on dev splits alone.

    python -m benchmarks.recipe_search FOLDER --model models/all-MiniLM-L6-v2 \\
        --feta ../shared/feta --dialogue ../shared/dialogue \\
        --log docs/development/recipe-search.csv --part seeds

Trains one model on four tasks: three of FETA's (few-sample split), and the emotion of dialogues of
EmpatheticDialogues, declared as a user's own data. One factor is changed at a time around a base.
No test split is read. Each finished training run is a line of the log, and is not repeated, so that
the search can be stopped and resumed at any time. ``--tasks`` limits the tasks.

``--part`` selects the settings, which have 300 training instances unless stated otherwise:

- ``seeds``: the base setting with ten seeds
- ``rates``: other learning rates. The base learning rate and the two below it are run with three
  seeds each, and the one above it with one seed
- ``factors``: gradient clipping, pooling, and initial weights and learning rate of heads, each with
  five seeds
- ``lengths``: other numbers of updates, schedules, batch sizes and weight decays
- ``sizes``: 100, 500 and 1,000 training instances
- ``epochs``: 5,000 training instances, with 300 updates and with three epochs

Training a model with 22M weights once takes two to four minutes on one core.
"""

from __future__ import annotations

import argparse
import csv
import fcntl
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from io import StringIO
from pathlib import Path
from typing import Any

import torch
import yaml

from benchmarks.own_corpora import SPLITS, write_own_data
from tasktransfer import metrics
from tasktransfer.core.nodes import Data, Stage
from tasktransfer.core.specs import LowRank, ModelSpec, Selection, Training
from tasktransfer.data.cache import cache_dataset
from tasktransfer.datasets import get_task
from tasktransfer.designs import load_config
from tasktransfer.encoding.encode import encode_dataset
from tasktransfer.encoding.encoded import read_split
from tasktransfer.models.encoder import Encoder
from tasktransfer.models.fitted_heads import fit_heads
from tasktransfer.models.load import Loading, load_model
from tasktransfer.models.parts import load_trained_state
from tasktransfer.tasks.card import Task
from tasktransfer.tasks.initial_heads import select_fitted_tasks
from tasktransfer.training.evaluate import evaluate_split
from tasktransfer.training.hardware import Hardware
from tasktransfer.training.loop import train
from tasktransfer.training.progress import Progress

TASKS = (
    ("Own", "emotion"),
    ("Friends", "emory_emotion_recognition"),
    ("DailyDialog", "topic_classification"),
    ("DailyDialog", "emotion_recognition"),
)
LABELS_TURNS = "utterance_classification"
"""Kind of the tasks that label turns; for others, ``reads: turn`` is the same as ``mean``."""
DEV = 300
"""Largest number of dev instances per task."""
MAX_LENGTH = 128
MANY = 5000
"""Training instances of the part ``epochs``."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Hyperparameters of one training."""

    learning_rate: float = 3e-4
    schedule: str = "linear"
    warmup: float = 0.1
    reads: str = "turn"
    batch_size: int = 16
    updates: int = 300
    weight_decay: float = 0.01
    head_learning_rate: float | None = None
    rank: int = 0
    """Rank of a low-rank adapter; 0 if all weights are trained."""
    head_initialization: str = "auto"
    precision: str = "bfloat16"
    max_grad_norm: float = 1.0


BASES = {
    "encoder": Setting(),
    "encoder-lora": Setting(learning_rate=1e-3, rank=16),
    "decoder": Setting(learning_rate=1e-4, reads="pooler", head_initialization="random"),
}
NO_CLIPPING = 1e6
"""Maximum gradient norm that no gradient reaches."""


def list_settings(kind: str, part: str) -> Iterator[tuple[int, Setting, int]]:
    """Yield (training instances, setting, seed) of a part of the search."""
    base = BASES[kind]
    if part == "seeds":
        yield from ((300, base, seed) for seed in range(10))
    elif part == "rates":
        rates = (base.learning_rate * factor for factor in (1 / 3, 2 / 3, 1, 5 / 3))
        changed = [replace(base, learning_rate=float(f"{rate:.3g}")) for rate in rates]
        yield from ((300, setting, 0) for setting in changed)
        yield from ((300, setting, seed) for seed in (1, 2) for setting in changed[:3])
    elif part == "factors":
        changes = list_factors(base)
        yield from ((300, replace(base, **change), seed) for seed in range(5) for change in changes)
    elif part == "lengths":
        yield from ((300, replace(base, **change), 0) for change in LENGTHS)
    elif part == "epochs":
        yield from ((MANY, replace(base, updates=updates), 0) for updates in (300, 938))
    else:
        few: list[dict[str, Any]] = [{}, {"updates": 150}, {"updates": 600}]
        yield from (
            (size, replace(base, **change), 0) for size in (100, 1000, 500) for change in few
        )


PARTS = ("seeds", "rates", "factors", "lengths", "sizes", "epochs")
LENGTHS: tuple[dict[str, Any], ...] = (
    {"updates": 150},
    {"updates": 600},
    {"schedule": "constant", "warmup": 0.0},
    {"schedule": "cosine"},
    {"warmup": 0.0},
    {"batch_size": 32},
    {"batch_size": 8},
    {"weight_decay": 0.0},
)
"""Changes of the length of training, and of schedule, batch size and weight decay."""


def list_factors(base: Setting) -> list[dict[str, Any]]:
    """Return changes of gradient clipping, and of what an encoder's heads read and start from."""
    factors: list[dict[str, Any]] = [{"max_grad_norm": NO_CLIPPING}]
    if base.reads == "turn":
        factors += [{"reads": reads} for reads in ("mean", "pooler", "first_token")]
        factors += [{"head_initialization": other} for other in ("random", "logistic_regression")]
    factors.append({"head_learning_rate": 10 * base.learning_rate})
    return factors


def adapt_setting(setting: Setting, card: Task) -> Setting:
    """Replace values that are equivalent to simpler ones for a task that does not label turns.

    There, ``reads: turn`` is the same as ``mean``, and heads of ``auto`` are ``random``.
    """
    if card.kind == LABELS_TURNS:
        return setting
    if setting.reads == "turn":
        setting = replace(setting, reads="mean")
    if setting.head_initialization == "auto":
        setting = replace(setting, head_initialization="random")
    return setting


# --- the data -------------------------------------------------------------------------------------


def encode(folder: Path, model: Path, family: str, feta: Path, dialogue: Path, most: int) -> Path:
    """Write missing instances and token ids of every task, and return the folder.

    Args:
        most: maximum number of training dialogues of EmpatheticDialogues.
    """
    folder.mkdir(parents=True, exist_ok=True)
    own = write_own_data(dialogue.resolve(), folder, most)
    files = {split: str(own / f"{name}.jsonl") for split, name in SPLITS.items()}
    document = {
        "study": "search",
        "data": {"release": str(feta.resolve())},
        "datasets": {
            "Own": {
                "files": files,
                "dialogue": {"turns": "messages", "text": "text", "speaker": "speaker", "id": "id"},
                "tasks": {"emotion": {"kind": "dialogue_classification", "label": "emotion"}},
            },
            **{name: {"tasks": [t for d, t in TASKS if d == name]} for name in FETA},
        },
        "algorithms": ["baseline"],
        "models": [{"name": "m", "family": family, "checkpoint": str(model.resolve())}],
        "training": {"epochs": 1},
    }
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(document), encoding="utf-8")
    load_config(config)  # registers the declared dataset
    for name in ("Own", *FETA):
        instances, out = folder / f"instances-{name}", folder / f"{model.name}-{name}"
        if not instances.exists():
            cache_dataset(name, feta.resolve(), True, instances)
        if not out.exists():
            tasks = [task for dataset, task in TASKS if dataset == name]
            encode_dataset(
                *(instances, name, tasks, str(model.resolve()), None, family, MAX_LENGTH, out)
            )
    return folder


FETA = ("DailyDialog", "Friends")


# --- a training -----------------------------------------------------------------------------------


def run_setting(
    encoded: Path,
    model: Path,
    family: str,
    dataset: str,
    task: str,
    size: int,
    of: Setting,
    seed: int,
) -> dict[str, Any]:
    """Train once, and return the measures on the dev split."""
    card, folder = get_task(dataset, task), encoded / f"{model.name}-{dataset}"
    splits = {
        name: read_split(folder, task, name).limit_instances(most)
        for name, most in (("train", size), ("dev", DEV))
    }
    training = Training(
        learning_rate=of.learning_rate,
        schedule=of.schedule,  # type: ignore[arg-type]
        warmup=of.warmup,
        batch_size=of.batch_size,
        updates=of.updates,
        weight_decay=of.weight_decay,
        decays="matrices",
        head_learning_rate=of.head_learning_rate,
        precision=of.precision,  # type: ignore[arg-type]
        head_initialization=of.head_initialization,  # type: ignore[arg-type]
        max_grad_norm=of.max_grad_norm,
    )
    adapter = LowRank(rank=of.rank) if of.rank else None
    spec = ModelSpec(
        *("m", family, "w", MAX_LENGTH),  # type: ignore[arg-type]
        reads=of.reads,  # type: ignore[arg-type]
        adapter=adapter,
    )
    every = max(1, of.updates // 6)
    stage = Stage(
        kind="baseline",
        label="search",
        data=Data(dataset, "r"),
        model=spec,
        train_tasks=(task,),
        selection=Selection((task,), every=every),
        training=training,
        seed=seed,
    )
    hardware = Hardware(of.precision, threads=1)
    device = hardware.prepare_device()
    began = time.process_time()
    loading = Loading(spec, training, folder, seed, device, begins=True)
    loaded = load_model(loading, str(model.resolve()), None, {task: card})
    setup = hardware.choose_setup(loaded, family, device)  # type: ignore[arg-type]
    if isinstance(loaded, Encoder):
        fitted = select_fitted_tasks({task: card}, training.head_initialization)
        fit_heads(loaded, fitted, {task: splits["train"]}, setup.eval_budget.tokens)
    trained = train(
        *(loaded, stage, {task: card}, {task: splits["train"]}, {task: splits["dev"]}),
        setup,
        Progress(1, "search", StringIO()),
    )
    seconds = time.process_time() - began
    (best,) = trained.best
    load_trained_state(loaded.module, best.weights)
    answers = evaluate_split(loaded, card, splits["dev"], setup, "default").predictions
    [(_, most)] = Counter(answers).most_common(1)
    losses = [entry.train_loss[task] for entry in trained.rounds if entry.round > 0]
    [(frequent, _)] = Counter(tuple(t) for t in splits["train"].targets).most_common(1)
    constant = metrics.compute_task_score(
        card, metrics.evaluate_predictions(card, [frequent] * len(answers), splits["dev"].targets)
    )
    return {
        "dev": round(best.score, 2),
        "last": round(best.scores[-1], 2),
        "best_round": f"{best.round}/{trained.last}",
        "constant": round(float(constant), 2),
        "largest_answer": round(most / len(answers), 3),
        "first_loss": round(losses[0], 3),
        "last_loss": round(losses[-1], 3),
        "cpu_seconds": round(seconds),
        "torch": torch.__version__,
    }


KEY = ("model", "dataset", "task", "size", "seed", *(field.name for field in fields(Setting)))
RESULT = (
    *("dev", "last", "best_round", "constant", "largest_answer", "first_loss", "last_loss"),
    *("cpu_seconds", "torch"),
)


def search(chosen: argparse.Namespace) -> None:
    """Train the settings missing from the log, one after the other."""
    chosen.folder.mkdir(parents=True, exist_ok=True)
    lock = (chosen.folder / ".lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)  # one process at a time
    folder, most = chosen.folder.resolve(), 2000
    log = chosen.log or folder / "recipe-search.csv"
    if chosen.part == "epochs":
        folder, most = folder / str(MANY), MANY
    encode(folder, chosen.model, chosen.family, chosen.feta, chosen.dialogue, most)
    done = set()
    if log.exists():
        with log.open(encoding="utf-8", newline="") as lines:
            done = {tuple(row[key] for key in KEY) for row in csv.DictReader(lines)}
    else:
        with log.open("w", encoding="utf-8", newline="") as out:
            csv.writer(out, lineterminator="\n").writerow([*KEY, *RESULT])
    kind = f"{chosen.family}-lora" if chosen.lora else chosen.family
    for size, planned, seed in list_settings(kind, chosen.part):
        for dataset, task in TASKS:
            if chosen.tasks and task not in chosen.tasks:
                continue
            setting = adapt_setting(planned, get_task(dataset, task))
            named: Mapping[str, Any] = {
                "model": chosen.model.name,
                "dataset": dataset,
                "task": task,
                "size": size,
                "seed": seed,
                **asdict(setting),
            }
            key = tuple("" if named[name] is None else str(named[name]) for name in KEY)
            if key in done:
                continue
            done.add(key)
            result = run_setting(
                *(folder, chosen.model, chosen.family, dataset, task, size, setting, seed)
            )
            with log.open("a", encoding="utf-8", newline="") as out:
                row = [*key, *(result[name] for name in RESULT)]
                csv.writer(out, lineterminator="\n").writerow(row)


def main() -> None:
    """Read the command line and search."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder for data and log")
    parser.add_argument("--model", type=Path, required=True, help="folder of a checkpoint")
    parser.add_argument("--family", default="encoder", choices=("encoder", "decoder"))
    parser.add_argument("--lora", action="store_true", help="train a low-rank adapter")
    parser.add_argument("--feta", type=Path, required=True, help="folder of FETA's release")
    parser.add_argument("--dialogue", type=Path, required=True, help="folder of other corpora")
    parser.add_argument(
        "--tasks", nargs="+", choices=sorted({task for _, task in TASKS}), help="only these tasks"
    )
    parser.add_argument("--part", choices=PARTS, default="seeds", help="default: seeds")
    parser.add_argument("--log", type=Path, help="default: FOLDER/recipe-search.csv")
    search(parser.parse_args())


if __name__ == "__main__":
    main()
