"""Check that scores with and without fast paths agree up to the noise of seeds.

python benchmarks/same_scores.py ENCODED CHECKPOINT --task dialogue_nli --epochs 6

Trains a task with and without fast paths, with the same seeds and settings, and prints the scores.
ENCODED is a folder written by `tasktransfer encode`; CHECKPOINT is the model it was written for.
With dropout, the two use different random numbers, so single seeds differ, but means should not.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import numpy as np
import torch

from tasktransfer.core.nodes import Data, Stage
from tasktransfer.core.specs import ModelSpec, Selection, Training
from tasktransfer.datasets import get_task
from tasktransfer.encoding.encoded import read_split
from tasktransfer.encoding.manifest import read_manifest
from tasktransfer.models.load import Loading, load_model
from tasktransfer.training.evaluate import evaluate_split
from tasktransfer.training.loop import train
from tasktransfer.training.memory import TokenBudget
from tasktransfer.training.progress import Progress
from tasktransfer.training.setup import Setup
from tasktransfer.training.token_budgets import CPU_TOKENS


def train_and_score(chosen: argparse.Namespace, seed: int, plain: bool) -> tuple[float, float]:
    """Return the best dev score, and the test score of its epoch."""
    cpu = torch.device("cpu")
    manifest = read_manifest(chosen.encoded)
    task = get_task(manifest["dataset"], chosen.task)
    spec = ModelSpec("", manifest["family"], "", 0)
    how = Loading(spec, Training(dropout=chosen.dropout), chosen.encoded, seed, cpu, plain=plain)
    model = load_model(how, str(chosen.checkpoint), None, {task.name: task})
    limits = {"train": chosen.limit_train, "dev": chosen.limit_test, "test": chosen.limit_test}
    splits = {
        name: read_split(chosen.encoded, task.name, name).limit_instances(limit)
        for name, limit in limits.items()
    }
    precision = "float32" if plain else chosen.precision
    train_tokens, eval_tokens = CPU_TOKENS[precision]
    budgets = TokenBudget(train_tokens, "training"), TokenBudget(eval_tokens, "evaluation")
    setup = Setup(cpu, *budgets, precision)
    training = Training(epochs=chosen.epochs, batch_size=20, learning_rate=chosen.learning_rate)
    stage = Stage(
        "baseline", task.short, Data(task.dataset, ""), spec,
        (task.name,), Selection((task.name,)), training, seed,
    )  # fmt: skip
    trained = train(
        model, stage, {task.name: task}, {task.name: splits["train"]}, {task.name: splits["dev"]},
        setup, Progress(1, "", io.StringIO()),
    )  # fmt: skip
    model.module.load_state_dict(trained.best[0].weights)
    return trained.best[0].score, evaluate_split(
        model, task, splits["test"], setup, "default"
    ).score


def main() -> None:
    """Print one row per seed, and the means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("encoded", type=Path)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--task", default="dialogue_nli")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--learning-rate", type=float, default=2e-4)
    parser.add_argument("--dropout", type=float, help="instead of the checkpoint's own")
    parser.add_argument(
        "--precision",
        choices=("float32", "bfloat16"),
        default="float32",
        help="of the fast path; the plain one is float32",
    )
    parser.add_argument("--limit-train", type=int)
    parser.add_argument("--limit-test", type=int)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    print("| seed | plain dev | fast dev | plain test | fast test |\n|---|---|---|---|---|")
    rows = []
    for seed in range(chosen.seeds):
        plain, fast = (train_and_score(chosen, seed, p) for p in (True, False))
        rows.append((plain[0], fast[0], plain[1], fast[1]))
        print(f"| {seed} | " + " | ".join(f"{value:.2f}" for value in rows[-1]) + " |", flush=True)
    table = np.array(rows)
    for name, values in (("mean", table.mean(0)), ("sd", table.std(0, ddof=1))):
        print(f"| {name} | " + " | ".join(f"{value:.2f}" for value in values) + " |")
    for name, one, other in (("dev", 0, 1), ("test", 2, 3)):
        gap = table[:, other] - table[:, one]
        error = gap.std(ddof=1) / np.sqrt(len(gap))
        print(f"{name}: fast - plain = {gap.mean():+.2f}, standard error {error:.2f}")


if __name__ == "__main__":
    main()
