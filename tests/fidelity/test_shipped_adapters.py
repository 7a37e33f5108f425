"""The table that compares LoRA with full fine-tuning agrees with the shipped records."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[2]
TASKS = {
    "dialogue acts": "dialogue_act_classification",
    "topics": "topic_classification",
    "emotions (Emory)": "emory_emotion_recognition",
    "emotions (MELD)": "MELD_emotion_recognition",
}


def test_the_pages_scores_are_the_records() -> None:
    scores: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    shipped = pq.read_table(ROOT / "shipped" / "minilm-adapters.parquet")
    for record in map(json.loads, filter(None, shipped["record"].to_pylist())):
        ((task, result),) = record["results"].items()
        node = record["node"]
        scores[task, node["model"]][node["identity"]["seed"]] = result["score"]
    lines = (ROOT / "docs" / "adapters.md").read_text().splitlines()
    printed = [re.match(r"\| (.+): score \| (.+) \| (.+) \|", line) for line in lines]
    found = {row[1]: row for row in printed if row}
    assert found.keys() == TASKS.keys()
    for name, task in TASKS.items():
        for cell, model in ((found[name][2], "minilm"), (found[name][3], "minilm-lora")):
            *seeds, mean = (float(number) for number in re.findall(r"[\d.]+", cell))
            ours = [scores[task, model][seed] for seed in range(3)]
            assert seeds == pytest.approx(ours, abs=0.051)
            assert mean == pytest.approx(sum(ours) / 3, abs=0.051)
