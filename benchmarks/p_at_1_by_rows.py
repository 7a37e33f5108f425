"""Measure P@1,100 of the released MiniLM for different ways to put test rows into blocks.

    python benchmarks/p_at_1_by_rows.py ../shared/dialogue models/all-MiniLM-L6-v2

Rows that are sampled individually rarely share a block with rows of the same dialogue, which are
the hard candidates, so their P@1 is a different, easier measure. The script takes about three
minutes on one core.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer

from tasktransfer.data.samples import select_indices
from tasktransfer.designs.empathetic.sources.cards import REPLY
from tasktransfer.designs.empathetic.sources.dialogues import EMPATHETIC_DIALOGUES
from tasktransfer.metrics.retrieval import compute_p_at_1, select_block_rows
from tasktransfer.models.dual_encoder import pool_mean

BLOCK, LIMIT, LONGEST, TOGETHER, SHUFFLES = 100, 1000, 102, 64, 20


def encode_texts(texts: list[str], folder: str) -> torch.Tensor:
    """Encode texts as unit vectors, shape (texts, hidden size)."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    tokenizer.truncation_side = "right"
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    vectors = torch.zeros(len(texts), model.config.hidden_size)
    for begin in range(0, len(order), TOGETHER):
        some = order[begin : begin + TOGETHER]
        read = tokenizer(
            [texts[i] for i in some],
            truncation=True,
            max_length=LONGEST,
            padding=True,
            return_tensors="pt",
        )
        with torch.inference_mode():
            made = pool_mean(model.eval(), read["input_ids"], read["attention_mask"])
        vectors[some] = functional.normalize(made, dim=-1)
    return vectors


def main(release: str, model: str) -> None:
    """Print the measure for the whole test set and for three ways to subsample it."""
    opened = EMPATHETIC_DIALOGUES.reader.open(Path(release), False)
    rows = list(opened.instances(REPLY.name, "test"))
    contexts = encode_texts([row.context for row in rows], model)
    replies = encode_texts([row.target[0] for row in rows], model)
    dialogues = np.array([row.dialogue_id for row in rows])

    def print_measure(name: str, kept: Any) -> None:
        def compute_scores(some: Any, others: Any) -> Any:
            return (contexts[kept[some]] @ replies[kept[others]].T).double().numpy()

        order = np.arange(len(kept))
        mates = [
            np.mean(dialogues[kept[block]][:, None] == dialogues[kept[block]]) * len(block) - 1
            for block in np.array_split(order, len(order) // BLOCK)
        ]
        right = 100 * compute_p_at_1(compute_scores, order, BLOCK).mean()
        print(f"{name:<44}{len(kept):>7,d}{right:>8.1f}{np.mean(mates):>8.2f}", flush=True)

    print(f"{'rows':<44}{'rows':>7}{'P@1':>8}{'mates':>8}   (mates: others of the same dialogue)")
    count = len(rows)
    print_measure("all", np.arange(count))
    print_measure(
        "10 whole blocks, as evaluation.limit does", select_block_rows(count, BLOCK, most=10)
    )
    print_measure("the first 1,000", np.arange(LIMIT))
    print_measure("1,000 sampled individually", select_indices(count, LIMIT))
    chance = np.random.default_rng(0)
    for _ in range(2):
        print_measure("all, shuffled", chance.permutation(count))


if __name__ == "__main__":
    main(*sys.argv[1:])
