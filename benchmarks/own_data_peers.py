"""Compare methods with setfit, AutoIntent and a scikit-learn script on the same dialogues.

    python -m benchmarks.own_data_peers FOLDER --dialogue ../shared/dialogue \\
        --model models/all-MiniLM-L6-v2 --methods frozen_logistic contrastive_logistic
    python -m benchmarks.own_data_peers FOLDER --dialogue ../shared/dialogue \\
        --model models/all-MiniLM-L6-v2 --methods setfit --python ENVIRONMENT/bin/python

The dialogues are those of ``benchmarks.own_data_methods``: EmpatheticDialogues with the emotion of
the situation as the label. All methods use the same encoder and the same training, dev and test
dialogues, with the texts that this package's references embed. A method of another package runs in
an environment in which this package is installed, named by ``--python``:

- ``scikit-learn``: torch, transformers, scikit-learn.
- ``setfit``: setfit 1.2.
- ``autointent:PRESET``: autointent 0.4 with sentence-transformers 3, such as
  ``autointent:classic-light``.

Other names, such as ``frozen_logistic``, are references of this package.

Each fit is a process of its own with one thread, from the start of Python to the predicted labels.
CPU seconds and peak memory of this process come from the operating system. Finished fits are
files in FOLDER/SIZE/fits, and are not repeated. A fit that ends in an error is kept with its
message.

All predictions are scored by the same code: micro and macro F1 in percent over the labels of the
test dialogues, and paired differences of their mean from the reference method. Intervals come from
resampled test dialogues and seeds. Writes FOLDER/own-data-peers.csv, one row per size and method.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import chdir
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import yaml

from benchmarks.own_corpora import build_empathetic_study
from benchmarks.own_data_methods import CONFIG, reduce_study, write_study
from tasktransfer.core.references import CONTRASTIVE, FROZEN
from tasktransfer.data.cache import MANIFEST, cache_dataset, read_instances
from tasktransfer.data.samples import select_instances
from tasktransfer.datasets import get_task
from tasktransfer.designs import open_study
from tasktransfer.evaluation.embedding_references import build_part_texts
from tasktransfer.files import replace_file
from tasktransfer.stats.clustered import compute_percentile_interval
from tasktransfer.stats.draws import create_generator

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
Row = dict[str, str]

SCRIPTS = {
    "scikit-learn": ("scikit_learn", ""),
    "setfit": ("setfit_pairs", "150"),
    "autointent": ("autointent_preset", "classic-light"),
}
"""Peer → its script, and the default of its option."""
DRAWS = 2000
"""Number of times that the test dialogues are resampled."""
SPLITS = ("train", "dev", "test")


@dataclass(frozen=True)
class Request:
    """Request to the script of another package.

    ``train``, ``dev``, ``test``: rows of ``text`` and ``label``. ``model``: folder of the encoder.
    ``option``: see the script. ``study``: config of a study with the fit of a reference of this
    package. ``out``: file for the predictions.
    """

    train: list[Row]
    dev: list[Row]
    test: list[Row]
    model: str
    seed: int
    option: str
    study: str
    out: str


def read_dialogues(folder: Path, document: dict[str, Any]) -> dict[str, list[Row]]:
    """Return the text and label of each dialogue of a study, by split."""
    write_study(folder, document)
    with chdir(folder):
        study = open_study(CONFIG)
        fit = next(fit for fit in study.plan.fits if fit.learner == FROZEN)
        cache = study.get_instances_folder(fit.data.name)
        if not Path(cache, MANIFEST).exists():
            release, few = study.get_release(fit.data.name), study.config.data.few_sample
            cache_dataset(fit.data.name, release, few, cache)
        (name,) = fit.tasks
        task = get_task(fit.data.name, name)
        rows = {}
        for split in SPLITS:
            limit = document["training"][f"limit_{split}"]
            instances = select_instances(read_instances(cache, name, split), limit)
            texts = build_part_texts(task, instances)["before"]
            labels = [instance.target[0] for instance in instances]
            rows[split] = [
                {"text": text, "label": label} for text, label in zip(texts, labels, strict=True)
            ]
    return rows


# --- one fit --------------------------------------------------------------------------------------


def measure_process(command: Sequence[str], log: Path) -> dict[str, Any]:
    """Run a command with one thread, and return its status, CPU seconds and peak memory."""
    with tempfile.TemporaryDirectory() as caches, log.open("w", encoding="utf-8") as stream:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        offline = {"HF_HUB_OFFLINE": "1", "XDG_CACHE_HOME": caches, "TOKENIZERS_PARALLELISM": "0"}
        environment = {**os.environ, **threads, **offline}
        process = subprocess.Popen(
            command, stdout=stream, stderr=stream, env=environment, cwd=Path(__file__).parents[1]
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return {
        "status": process.returncode,
        "seconds": used.ru_utime + used.ru_stime,
        "megabytes": used.ru_maxrss / 1024,
    }


def fit_method(
    folder: Path, method: str, python: str, rows: dict[str, list[Row]], model: Path, study: Path
) -> dict[str, Any]:
    """Return the result of a fit, from its file if finished before, else from a process of its own.

    Args:
        folder: folder of the fit, whose name ends in its seed.
        method: reference of this package, or peer with an optional option.
        python: interpreter of the peer's environment.
        rows: dialogues of each split.
        model: folder of the encoder.
        study: config of a study with this fit, for references of this package.
    """
    file = folder / "result.json"
    if not file.exists():
        name, _, option = method.partition(":")
        script, default = SCRIPTS.get(name, ("own_reference", name))
        answers, request = folder / "answers.json", folder / "request.json"
        about = Request(
            **rows,
            model=str(model.resolve()),
            seed=int(folder.name),
            option=option or default,
            study=str(study.resolve()),
            out=str(answers.resolve()),
        )
        folder.mkdir(parents=True, exist_ok=True)
        request.write_text(json.dumps(asdict(about)), encoding="utf-8")
        module = f"benchmarks.peers.{script}"
        result = measure_process([python, "-m", module, str(request.resolve())], folder / "log.txt")
        if result["status"]:
            result["error"] = find_error((folder / "log.txt").read_text(encoding="utf-8"))
        else:
            result |= json.loads(answers.read_text(encoding="utf-8"))
        with replace_file(file) as part:
            part.write_text(json.dumps(result), encoding="utf-8")
    finished: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return finished


def find_error(log: str) -> str:
    """Return the line of the last exception in a log, or else its last line."""
    lines = log.strip().splitlines() or [""]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception)\b", line)]
    return (raised or lines)[-1]


# --- scores ---------------------------------------------------------------------------------------


def compute_f1(golds: Labels, predictions: Labels, weights: Floats, labels: int) -> Floats:
    """Return micro and macro F1 in percent for resampled dialogues, (2, draws).

    Args:
        golds: label number of each dialogue, from 0 to ``labels`` - 1.
        predictions: predicted label number of each dialogue; -1 for any other label.
        weights: number of times that each dialogue is resampled, (draws, dialogues).
        labels: number of labels of macro F1.
    """
    is_gold = golds[:, None] == np.arange(labels)
    is_predicted = predictions[:, None] == np.arange(labels)
    hits = weights @ (is_gold & is_predicted)
    both = weights @ is_gold.astype(float) + weights @ is_predicted.astype(float)
    macro = np.divide(2 * hits, both, out=np.zeros_like(hits), where=both > 0).mean(axis=1)
    # Each dialogue has one predicted label, so micro F1 is accuracy.
    micro = hits.sum(axis=1) / weights.sum(axis=1)
    return 100 * np.stack([micro, macro])


def score_methods(
    golds: Sequence[str], predictions: dict[str, list[list[str]]], reference: str
) -> pd.DataFrame:
    """Return one row per method: F1 scores, and the paired difference from the reference method.

    Args:
        golds: label of each test dialogue.
        predictions: method → seeds → predicted label of each dialogue.
        reference: method from which differences are computed.
    """
    names = sorted(set(golds))
    numbers = {name: number for number, name in enumerate(names)}
    gold = np.array([numbers[label] for label in golds])
    drawn = create_generator("own-data-peers").multinomial(
        len(golds), np.full(len(golds), 1 / len(golds)), size=DRAWS
    )
    weights = np.vstack([np.ones(len(golds)), drawn])
    scores = {
        method: np.stack(
            [
                compute_f1(gold, np.array([numbers.get(x, -1) for x in one]), weights, len(names))
                for one in seeds
            ]
        )
        for method, seeds in predictions.items()
    }
    return pd.DataFrame(
        [
            {
                "method": method,
                "seeds": len(values),
                **describe_scores(values, scores.get(reference)),
            }
            for method, values in scores.items()
        ]
    )


def describe_scores(values: Floats, others: Floats | None) -> dict[str, float]:
    """Return means over seeds with intervals, and differences of the mean of micro and macro F1.

    Args:
        values, others: scores of two methods, (seeds, 2, 1 + draws); the first draw is the test
            set. If the methods have different numbers of seeds, each of the shorter is repeated.
    """
    micro, macro = values[:, :, 0].mean(axis=0)
    row = {"micro_f1": float(micro), "macro_f1": float(macro)}
    compared = {"score": values.mean(axis=1)}
    if others is not None:
        most = max(len(values), len(others))
        mean, other = (
            np.resize(scores, (most, *scores.shape[1:])).mean(axis=1) for scores in (values, others)
        )
        compared["delta"] = mean - other
    for name, drawn in compared.items():
        low, high = compute_percentile_interval(drawn[:, 1:], "own-data-peers", name)
        key = "" if name == "score" else "delta_"
        row |= {name: float(drawn[:, 0].mean()), f"{key}low": low, f"{key}high": high}
    return row


def compare_methods(
    golds: Sequence[str], results: dict[str, list[dict[str, Any]]], reference: str
) -> pd.DataFrame:
    """Return one row per method: scores, costs, and the error if its fits end in one."""
    done = {m: [r for r in fits if not r["status"]] for m, fits in results.items()}
    answers = {m: [r["predictions"] for r in fits] for m, fits in done.items() if fits}
    costs = pd.DataFrame(
        [
            {
                "method": method,
                "seconds": np.mean([fit["seconds"] for fit in done[method] or fits]),
                "import_seconds": np.mean([fit.get("ready_seconds", np.nan) for fit in fits]),
                "megabytes": np.max([fit["megabytes"] for fit in fits]),
                "errors": sum(fit["status"] != 0 for fit in fits),
                "error": next((fit["error"] for fit in fits if fit["status"]), ""),
            }
            for method, fits in results.items()
        ]
    )
    if not answers:
        return costs
    return costs.merge(score_methods(golds, answers, reference), on="method", how="left")


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, run the missing fits and print the comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder for the fits and the table")
    parser.add_argument("--dialogue", type=Path, required=True, help="empathetic_dialogues' folder")
    parser.add_argument("--model", type=Path, required=True, help="folder of the encoder")
    parser.add_argument("--methods", nargs="*", default=[], help="methods to fit")
    parser.add_argument("--python", default=sys.executable, help="interpreter for these methods")
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 300])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--reference", default=CONTRASTIVE, help="method that others are compared with"
    )
    chosen = parser.parse_args(arguments)
    document = build_empathetic_study(chosen.folder, chosen.dialogue, chosen.model)
    tables = []
    for size in chosen.sizes:
        folder = chosen.folder / str(size)
        rows = read_dialogues(folder, reduce_study(document, size, 1))
        for method in chosen.methods:
            for seed in range(chosen.seeds):
                study = folder / f"seed{seed}.yaml"
                reduced = reduce_study(document, size, 1) | {"seeds": [seed]}
                study.write_text(yaml.safe_dump(reduced, sort_keys=False), encoding="utf-8")
                place = folder / "fits" / method.replace(":", "-") / str(seed)
                fit_method(place, method, chosen.python, rows, chosen.model, study)
        results = read_results(folder / "fits")
        if results:
            golds = [row["label"] for row in rows["test"]]
            table = compare_methods(golds, results, chosen.reference)
            tables.append(table.assign(size=size))
    if tables:
        table = pd.concat(tables).round(2)
        table = table[["size", *table.columns.drop("size")]]
        with replace_file(chosen.folder / "own-data-peers.csv") as part:
            table.to_csv(part, index=False)
        print(table.to_string(index=False))


def read_results(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the finished fits of each method, in the order of seeds."""
    results: dict[str, list[dict[str, Any]]] = {}
    for file in sorted(folder.glob("*/*/result.json")):
        fit = json.loads(file.read_text(encoding="utf-8"))
        results.setdefault(file.parent.parent.name, []).append(fit)
    return results


if __name__ == "__main__":
    main()
