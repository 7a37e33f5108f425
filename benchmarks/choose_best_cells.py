"""Write workflow/presets/minilm-controls.yaml, which runs controls for the best cells of a matrix.

    python -m benchmarks.choose_best_cells --tables results/minilm-matrix/tables

The selection uses only dev scores of the matrix's first seed. It takes the pairs of each dataset
for which pre-train → fine-tune gains most over the target's baseline.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from benchmarks.choose_base_models import CUTS

ALGORITHM = "pretrain_finetune"
"""Algorithm that the controls belong to."""
PRESET = Path(__file__).parents[1] / "workflow" / "presets" / "minilm-controls.yaml"

HEAD = """\
# Does a gain of MiniLM's matrix come from its source? The pairs of each dataset that gain most by
# dev of the first seed (`python -m benchmarks.choose_best_cells`, before any control was trained),
# pre-train → fine-tune, beside three controls. Settings are those of
# workflow/presets/minilm-matrix.yaml.
#
#   make minilm
#   source .venv/bin/activate
#   snakemake --cores all --configfile workflow/presets/minilm-controls.yaml
#
study: The best cells of MiniLM's matrix, beside controls
results: results/minilm-controls
data:
  release: ../shared/feta
datasets:
"""

TAIL = """\
models:
  - name: minilm
    family: encoder
    checkpoint: ./models/all-MiniLM-L6-v2
    max_length: 128 # marked: the model could read 512
algorithms: [pretrain_finetune]
controls: [self_transfer, longer_baseline, shuffled_source]
seeds: 2
training:
  learning_rate: 1e-4
"""


def select_best_cells(runs: pd.DataFrame, count: int) -> list[tuple[str, str]]:
    """Return the (source, target) pairs of a dataset by dev gain with one seed, largest first."""
    baselines = runs[runs["algorithm"] == "baseline"].set_index("target")["dev_score"]
    tried = runs[runs["algorithm"] == ALGORITHM]
    gain = tried["dev_score"] - tried["target"].map(baselines)
    best = tried.assign(gain=gain).sort_values("gain", ascending=False, kind="stable")
    return [*best.head(count)[["source", "target"]].itertuples(index=False, name=None)]


def format_preset(tables: Path, count: int) -> str:
    """Return the text of the preset, with ``count`` pairs per dataset."""
    runs = pd.read_parquet(tables / "runs.parquet")
    runs = runs[runs["seed"] == runs["seed"].min()]
    lines = []
    for dataset, rows in runs.groupby("dataset"):
        lines += [f"  {dataset}:", "    tasks: all", "    pairs:"]
        lines += [
            f"      - {{source: {s}, target: {t}}}" for s, t in select_best_cells(rows, count)
        ]
    return HEAD + "\n".join(lines) + "\n" + TAIL + CUTS


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=Path, default=Path("results/minilm-matrix/tables"))
    parser.add_argument("--pairs", type=int, default=6, help="number of pairs per dataset")
    parser.add_argument("--out", type=Path, default=PRESET)
    chosen = parser.parse_args()
    chosen.out.write_text(format_preset(chosen.tables, chosen.pairs))
    print(chosen.out)


if __name__ == "__main__":
    main()
