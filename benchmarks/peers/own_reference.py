"""A reference of this package, fitted as in a study. The request's ``option`` is its name."""

import json
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
import yaml

from benchmarks.own_data_methods import fit_reference
from tasktransfer.results.state import ROWS

request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
document = yaml.safe_load(Path(request["study"]).read_text(encoding="utf-8"))
ready = time.process_time()
with tempfile.TemporaryDirectory() as folder:
    fit_reference(Path(folder), document, len(request["train"]), request["option"])
    (file,) = Path(folder).glob(f"results/fits/**/{ROWS}")
    predictions = [answer[0] for answer in pd.read_parquet(file)["prediction"]]
result = {"predictions": predictions, "ready_seconds": ready}
Path(request["out"]).write_text(json.dumps(result), encoding="utf-8")
