"""Exported folders without this package, and predictions of many dialogues in bounded memory."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from exported_study import (
    CONFIG,
    compute_own_logits,
    few_updates,  # noqa: F401  # a fixture of the whole module
    finish_study,
    list_texts,
    list_training_dialogues,
    write_dialogues,
)
from tasktransfer.designs import get_design, open_study
from tasktransfer.jobs.export_model import ExportRequest, export_model
from tasktransfer.jobs.predictor import load_predictor

PAGE = Path(__file__).resolve().parents[2] / "docs" / "performance.md"
ABSENT = """
import json, os, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "tasktransfer":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
folder, texts = sys.argv[1], json.load(sys.stdin)
names = json.load(open(os.path.join(folder, "tasktransfer.json")))["labels"]
"""
CODE = {
    "transformers": """
from transformers import pipeline
classify = pipeline("text-classification", folder)
rows = classify(texts, truncation=True, top_k=None, function_to_apply="none")
scores = [{each["label"]: each["score"] for each in row} for row in rows]
logits = [[row[name] for name in names] for row in scores]
""",
    "sentence_transformers": """
from sentence_transformers import SentenceTransformer
logits = SentenceTransformer(folder, device="cpu").encode(texts).tolist()
""",
}
"""Library → code that reads an exported folder as its model card describes."""
EXPORTED = {
    "classifier": ("transformers", "baseline", "small", "intent"),
    "mean": ("sentence_transformers", "baseline", "mean", "intent"),
    "frozen": ("sentence_transformers", "frozen_logistic", None, "intent"),
    "contrastive": ("sentence_transformers", "contrastive_logistic", None, "intent"),
    "turns": ("transformers", "baseline", "small", "mood"),
    "last_turn": ("tasktransfer", "baseline", "turn", "mood"),
}
"""Folder → library, method, model and task."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the exported models of a finished study."""
    out = tmp_path_factory.mktemp("exported")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("study"))
        # Train until the labels of the dialogues differ.
        patch.setitem(CONFIG, "training", {**CONFIG["training"], "epochs": 8})
        patch.setitem(CONFIG["training"], "learning_rate", 5e-3)
        turn = {**CONFIG["models"][0], "name": "turn", "reads": "turn"}
        patch.setitem(CONFIG, "models", [*CONFIG["models"], turn])
        finish_study()
        study = open_study("study.yaml")
        for name, (_, method, model, task) in EXPORTED.items():
            request = ExportRequest(task, method, model=model)
            export_model(study, get_design(study.config), out / name, request)
    return out


@pytest.mark.parametrize("name", ["classifier", "mean", "frozen", "contrastive"])
def test_other_libraries_predict_the_same_without_this_package(folders: Path, name: str) -> None:
    library = EXPORTED[name][0]
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    texts = list_texts(200)
    assert max(len(text.split()) for text in texts) > 20, "some are truncated"
    done = subprocess.run(
        [sys.executable, "-c", f"{ABSENT}{CODE[library]}print(json.dumps(logits))", folders / name],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    logits, predictor = np.array(json.loads(done.stdout)), load_predictor(folders / name)
    own = compute_own_logits(predictor, texts)
    assert own.std(axis=0).min() > 0.01
    assert np.abs(logits - own).max() < 1e-5
    labels = [predictor.labels[best] for best in logits.argmax(axis=1)]
    assert labels == [each.label for each in predictor.predict(texts)]


def test_the_code_of_the_model_card_reads_the_last_turn(folders: Path) -> None:
    """Other libraries have no such head, so that the card contains the computation."""
    folder = folders / "last_turn"
    earlier, last = "agent: the parcel is fine number 1 " * 4, "customer: the refund is awful"
    card = (folder / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(import torch.*?)```", card, re.DOTALL)
    code = re.sub(r"earlier, last = .*", f"earlier, last = {earlier!r}, {last!r}", code)
    code = code.replace('"FOLDER', f'"{folder}')
    done = subprocess.run(
        [sys.executable, "-c", f"{ABSENT}{code}print(json.dumps(logits.tolist()))", folder],
        input="null",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    predictor = load_predictor(folder)
    assert predictor.exported.pooling == "turn"
    instance = predictor.exported.build_instance("", earlier + last, len(earlier), {})
    own = predictor.compute([instance], 8)
    assert np.abs(np.array(json.loads(done.stdout)) - own).max() < 1e-5
    (predicted,) = predictor.predict([[*["agent: the parcel is fine number 1"] * 4, last]])
    assert predicted.label == predictor.labels[own[0].argmax()]


MEASURE = """
import re, sys
from tasktransfer.cli import main
assert main(sys.argv[1:]) == 0
print(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_many_turns_are_predicted_in_bounded_memory(folders: Path, tmp_path: Path) -> None:
    """A file of 100,000 turns needs at most 50 MiB more memory than a file of 10,000 turns."""
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    megabytes = []
    for count in (4_000, 40_000):
        rows = list_training_dialogues(count)
        turns = sum(len(row["messages"]) for row in rows)
        file, out = write_dialogues(tmp_path / "many.jsonl", rows), tmp_path / "out.jsonl"
        words = ("predict", folders / "turns", file, "--out", out)
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, *words], capture_output=True, text=True, check=True
        )
        with out.open(encoding="utf-8") as lines:
            assert sum(1 for _ in lines) == turns
        megabytes.append(int(done.stdout) / 1024)
        documented = re.search(rf"(\d+) MiB for {turns:,} turns", page)
        assert documented and megabytes[-1] == pytest.approx(int(documented[1]), rel=0.25)
    assert megabytes[1] - megabytes[0] < 50
