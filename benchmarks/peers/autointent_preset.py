"""AutoIntent: search for an embedder's classifier and its decision threshold with a preset.

The request's ``option`` is the preset. Its model is replaced by the request's, so that all methods
use one encoder. The dev split is the validation split if it has all labels. AutoIntent refuses it
otherwise, and then splits the training dialogues itself.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

from autointent import Dataset, Pipeline
from autointent.configs import LoggingConfig, SentenceTransformerEmbeddingConfig
from autointent.utils import load_preset

request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
ready = time.process_time()
labels = sorted({row["label"] for row in request["train"]})
splits = {
    split: [
        {"utterance": row["text"], "label": labels.index(row["label"])}
        for row in request[name]
        if row["label"] in labels
    ]
    for split, name in (("train", "train"), ("validation", "dev"))
}
if len({row["label"] for row in splits["validation"]}) < len(labels):
    del splits["validation"]
preset = load_preset(request["option"])
for node in preset["search_space"]:
    for module in node["search_space"]:
        if "classification_model_config" in module:
            module["classification_model_config"] = [{"model_name": request["model"]}]
preset.pop("embedder_config", None)
with tempfile.TemporaryDirectory() as folder:
    # AutoIntent refuses the seed 0.
    pipeline = Pipeline.from_optimization_config({**preset, "seed": request["seed"] + 1})
    pipeline.set_config(SentenceTransformerEmbeddingConfig(model_name=request["model"]))
    pipeline.set_config(LoggingConfig(project_dir=folder))
    pipeline.fit(Dataset.from_dict(splits))
    predictions = pipeline.predict([row["text"] for row in request["test"]])
# A pipeline with a threshold may predict no label.
named = ["" if number is None else labels[int(number)] for number in predictions]
result = {"predictions": named, "ready_seconds": ready}
Path(request["out"]).write_text(json.dumps(result), encoding="utf-8")
