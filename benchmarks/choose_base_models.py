"""Write workflow/presets/base-models.yaml, in which larger models repeat transfers of a matrix.

    python -m benchmarks.choose_base_models --tables results/minilm-matrix/tables

The selection uses only dev scores of the matrix's first seed. It takes the five tasks of a dataset
whose baselines are furthest above the most frequent answer. For each task it takes the two sources
with the best and the two with the worst dev scores, averaged over the repeated algorithms.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

ALGORITHMS = ("pretrain_finetune", "multitask_finetune")
PRESET = Path(__file__).parents[1] / "workflow" / "presets" / "base-models.yaml"

HEAD = """\
# Does MiniLM's ranking of sources carry over to larger models? An encoder of BERT-base's size
# (all-mpnet-base-v2, 109M) and a decoder (SmolLM2-135M-Instruct) repeat some transfers of
# workflow/presets/minilm-matrix.yaml: of five tasks of {dataset} that MiniLM learns, the two
# best and the two worst sources by dev scores of its first seed. Pairs were chosen by
#
#   python -m benchmarks.choose_base_models
#
# before any of these trainings was run. Cuts are the matrix's; the learning rate was not tuned.
# All but four of the trainings are shipped (shipped/BASE.md), from a GPU. On two cores they would
# take most of a day (`tasktransfer plan`), and one of the decoder's 12 GB of memory.
#
#   make models
#   source .venv/bin/activate
#   tasktransfer merge shipped/base-models.parquet --config workflow/presets/base-models.yaml
#   snakemake --cores all --resources gpu=1 --configfile workflow/presets/base-models.yaml
#
study: Sources of MiniLM's matrix with larger models
results: results/base-models
data:
  release: ../shared/feta
datasets:
  {dataset}:
    tasks: all
    pairs:
"""

CUTS = """\
  batch_size: 30
  epochs: 6 # marked: the benchmark trains for 30 (Friends 20), in batches of 60, at 3e-5
  precision: bfloat16
  deterministic: true # equal seeds give equal numbers on a GPU too
  limit_train: 500 # marked: the few-sample training sets hold 54 to 7,167 instances
  limit_dev: 200 # marked: the dev sets hold 15 to 1,410
  limit_test: 1200 # marked: the test sets hold 110 to 16,057
"""
"""Settings of the matrix, so that the same instances are read."""

TAIL = """\
models:
  - name: mpnet
    family: encoder
    checkpoint: ./models/all-mpnet-base-v2
    max_length: 128 # marked: the model could read 512
  - name: smollm2-135m
    family: decoder
    checkpoint: ./models/SmolLM2-135M-Instruct.Q4_1.gguf
    max_length: 288 # marked: the model could read 8,192; a question and its answer need up to 258
algorithms: [pretrain_finetune, multitask_finetune]
seeds: 1
training:
  learning_rate: 5e-5
"""


def select_learnt_tasks(runs: pd.DataFrame, reference: pd.DataFrame, count: int) -> list[str]:
    """Return the tasks whose baselines exceed the most frequent answer by most, on dev."""
    dev = runs[runs["algorithm"] == "baseline"].groupby("target")["dev_score"].mean()
    prior = reference[reference["reference"] == "most_frequent"].set_index("target")["score"]
    above = (dev - prior.reindex(dev.index)).sort_values(ascending=False, kind="stable")
    return [str(task) for task in above.index[:count]]


def select_best_and_worst(runs: pd.DataFrame, target: str, each: int) -> list[tuple[str, str]]:
    """Return pairs (source, "best" or "worst") for a target, the best first."""
    tried = runs[(runs["target"] == target) & runs["algorithm"].isin(ALGORITHMS)]
    dev = tried.groupby("source")["dev_score"].mean().sort_values(ascending=False, kind="stable")
    if len(dev) < 2 * each:
        raise SystemExit(
            f"{target}: The target has {len(dev)} sources, but --each {each} needs {2 * each}. Set "
            "a lower number."
        )
    sources = [str(source) for source in dev.index]
    return [(s, "best") for s in sources[:each]] + [(s, "worst") for s in sources[-each:]]


def format_preset(tables: Path, dataset: str, tasks: int, each: int) -> str:
    """Return the text of the preset."""
    runs = pd.read_parquet(tables / "runs.parquet")
    runs = runs[(runs["dataset"] == dataset) & (runs["seed"] == runs["seed"].min())]
    reference = pd.read_parquet(tables / "reference.parquet")
    lines = [
        f"      # {which}\n      - {{source: {source}, target: {target}}}"
        for target in select_learnt_tasks(runs, reference[reference["dataset"] == dataset], tasks)
        for source, which in select_best_and_worst(runs, target, each)
    ]
    return HEAD.format(dataset=dataset) + "\n".join(lines) + "\n" + TAIL + CUTS


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=Path, default=Path("results/minilm-matrix/tables"))
    parser.add_argument("--dataset", default="DailyDialog")
    parser.add_argument("--tasks", type=int, default=5)
    parser.add_argument("--each", type=int, default=2, help="sources at either end")
    parser.add_argument("--out", type=Path, default=PRESET)
    chosen = parser.parse_args()
    chosen.out.write_text(format_preset(chosen.tables, chosen.dataset, chosen.tasks, chosen.each))
    print(chosen.out)


if __name__ == "__main__":
    main()
