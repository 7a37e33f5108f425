"""SetFit: contrastive fine-tuning on pairs, then logistic regression, with setfit's defaults.

The request's ``option`` is the number of training steps. The default of setfit, one epoch over all
pairs, has thousands of steps from 300 dialogues of 32 labels.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

from datasets import Dataset
from setfit import SetFitModel, Trainer, TrainingArguments

request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
ready = time.process_time()
train = Dataset.from_list(request["train"])
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        max_steps=int(request["option"]),
        seed=request["seed"],
        report_to="none",
        save_strategy="no",
    )
    model = SetFitModel.from_pretrained(
        request["model"], labels=sorted({row["label"] for row in request["train"]})
    )
    Trainer(model=model, args=arguments, train_dataset=train).train()
    predictions = list(model.predict([row["text"] for row in request["test"]]))
result = {"predictions": [str(label) for label in predictions], "ready_seconds": ready}
Path(request["out"]).write_text(json.dumps(result), encoding="utf-8")
