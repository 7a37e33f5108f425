"""Logistic regression of scikit-learn on mean-pooled states of an encoder, in plain transformers.

The request's ``option`` is not used.
"""

import json
import sys
import time
from pathlib import Path

import torch
from sklearn.linear_model import LogisticRegression
from transformers import AutoModel, AutoTokenizer

request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
ready = time.process_time()
tokenizer = AutoTokenizer.from_pretrained(request["model"])
model = AutoModel.from_pretrained(request["model"]).eval()


@torch.inference_mode()
def embed(texts):
    batches = []
    for begin in range(0, len(texts), 32):
        batch = texts[begin : begin + 32]
        tokens = tokenizer(
            batch, padding=True, truncation=True, max_length=256, return_tensors="pt"
        )
        mask = tokens["attention_mask"].unsqueeze(-1)
        states = model(**tokens).last_hidden_state
        batches.append((states * mask).sum(dim=1) / mask.sum(dim=1))
    return torch.cat(batches).numpy()


train, test = request["train"], request["test"]
head = LogisticRegression(max_iter=1000, random_state=request["seed"])
head.fit(embed([row["text"] for row in train]), [row["label"] for row in train])
predictions = head.predict(embed([row["text"] for row in test])).tolist()
result = {"predictions": predictions, "ready_seconds": ready}
Path(request["out"]).write_text(json.dumps(result), encoding="utf-8")
