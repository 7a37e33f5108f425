"""Measure the paper's toolkit, TLiDB, with its own loop on the same instances and weights.

None of its code is copied here: its modules are imported from the given folder. It uses its own
data sets, collating, tokenizing in every batch, algorithm, ``run_epoch``, ``evaluate`` and metrics.
Options are its defaults: batches of 20, three per update; four loader processes; fp16 on a GPU for
BERT and GPT-2; sampling with two beams. Only these things are changed at run time:

* names missing from current libraries (``transformers.AdamW``) or not needed (nltk, bert_score);
* checkpoint and tokenizer come from a local folder instead of three hub names;
* training and evaluation use the given instances in the given order instead of a random one.

Weights of heads are random, from its own code. Its loss, prompts and truncation are its own, so it
reads slightly different tokens than the others; its decoders also learn prompts.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils.data import DataLoader, Subset

from benchmarks.training_speed.cases import BATCH, DATASET, SEED, Measured, Work
from benchmarks.training_speed.clock import FirstUpdate, measure_seconds, read_memory, wait_for_gpu
from tasktransfer.core.specs import Family, Training
from tasktransfer.encoding.encoded import EncodedSplit, read_split
from tasktransfer.training.samplers import build_task_batches

NAMES = {"encoder": "bert", "decoder": "gpt2", "encoder_decoder": "t5"}
"""Family → name of its model config."""


def run(work: Work, started: float) -> Measured:
    """Measure one case."""
    first = FirstUpdate(started)
    first.watch()
    torch.set_num_threads(work["threads"])
    config = _parse_options(work)
    from tlidb.examples import run_experiment, train  # type: ignore[import-not-found]

    utils, logger = run_experiment, run_experiment.Logger(mode="w")
    utils.set_seed(SEED)
    datasets = {
        split: utils.load_datasets_split(split, [work["task"]], [DATASET], config)
        for split in ("train", "dev")
    }
    algorithm = utils.initialize_algorithm(config, datasets)
    training = datasets["train"]
    whole = training["datasets"][0]

    def run_epochs(part: str) -> None:
        volume = work[part]  # type: ignore[literal-required]
        split = _read_split(work, "train", volume["instances"])
        rows = _find_rows(whole, split)
        for epoch in range(1, volume["epochs"] + 1):
            order = _order_rows(work["task"], split, rows, epoch)
            training["loaders"] = [_build_loader(whole, order, config)]
            train.run_epoch(algorithm, training, config, logger, train=True)

    run_epochs("warm_up")
    train_seconds = measure_seconds(lambda: run_epochs("measured"))
    limit = work["measured"]["evaluate"]
    dev, dev_samples = _limit_loader(work, datasets["dev"], "dev", limit, config)
    dev_seconds = measure_seconds(
        lambda: train.run_epoch(algorithm, dev, config, logger, train=False)
    )
    test = utils.load_datasets_split("test", [work["task"]], [DATASET], config)
    test, test_samples = _limit_loader(work, test, "test", limit, config)
    test_seconds = measure_seconds(
        lambda: train.evaluate(algorithm, {"test": test}, config, logger, 0, is_best=True)
    )
    wait_for_gpu()
    own, gpu = read_memory()
    volume = work["measured"]
    half = config.fp16 and config.device == "cuda"
    return Measured(
        start_up=first.required_seconds,
        train=train_seconds,
        train_samples=volume["instances"] * volume["epochs"],
        updates=volume["instances"] // BATCH * volume["epochs"],
        dev=dev_seconds,
        dev_samples=dev_samples,
        test=test_seconds,
        test_samples=test_samples,
        memory_mb=own,
        gpu_memory_mb=gpu,
        device=config.device,
        precision="float16" if half else "float32",
        score=None,
    )


# --- opening it ---------------------------------------------------------------------------------


def _parse_options(work: Work) -> Any:
    """Import and patch the toolkit, and return the options from its parser."""
    parse_args = import_toolkit(Path(str(work["toolkit"])))
    few = ["--few_shot_percent", "0.1"] if work["few_sample"] else []
    sys.argv = [
        "run_experiment.py", "--model_config", NAMES[work["family"]], "--seed", str(SEED),
        "--data_dir", work["release"], "--log_and_model_dir", work["scratch"], "--do_train",
        "--source_tasks", work["task"], "--source_datasets", DATASET, "--do_eval", "--eval_best",
        "--target_tasks", work["task"], "--target_datasets", DATASET, *few,
    ]  # fmt: skip
    config = parse_args()
    config.save_pred = False
    config.save_path_dir = work["scratch"]
    load_locally(work["family"], work["checkpoint"])
    return config


def import_toolkit(folder: Path) -> Any:
    """Make the toolkit importable, with unneeded modules left empty, and return its parser."""
    sys.path.insert(0, str(folder))
    for name in ("nltk", "bert_score"):  # for generated responses, which FETA does not have
        sys.modules.setdefault(name, ModuleType(name))
    from tlidb.examples.argparser import parse_args  # type: ignore[import-not-found]

    return parse_args


def load_locally(family: Family, folder: str) -> None:
    """Patch the three places that load a checkpoint by name to use a folder."""
    from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

    auto = {
        "encoder": AutoModel,
        "decoder": AutoModelForCausalLM,
        "encoder_decoder": AutoModelForSeq2SeqLM,
    }[family]

    def initialize_model(_: Any) -> tuple[Any, Any]:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        return tokenizer, auto.from_pretrained(folder, dtype=torch.float32)

    if family == "encoder":
        from tlidb.examples.models import bert as place  # type: ignore[import-not-found]
    elif family == "decoder":
        from tlidb.examples.models import gpt2 as place
    else:
        from tlidb.examples.models import t5 as place
    place.initialize_model = initialize_model
    # It is imported for another option. It is looked up in ``sys.modules``, since loading T5's
    # classes puts a new module there.
    current: Any = sys.modules["transformers"]
    if not hasattr(current, "AdamW"):
        current.AdamW = torch.optim.AdamW
    importlib.import_module("tlidb.examples.optimizers")


# --- the given instances in the given order -----------------------------------------------------


def _read_split(work: Work, name: str, limit: int | None) -> EncodedSplit:
    return read_split(Path(work["encoded"]), work["task"], name).limit_instances(limit)


def _find_rows(whole: Any, split: EncodedSplit) -> list[int]:
    """Return the position of each of our instances in the toolkit's data set. Ids may repeat."""
    places: dict[str, list[int]] = {}
    for row, metadata in enumerate(whole.metadata_array):
        places.setdefault(metadata["instance_id"], []).append(row)
    used: dict[str, int] = dict.fromkeys(places, 0)
    rows = []
    for name in split.ids:
        if name not in places:
            raise RuntimeError(f"The toolkit's {whole.task} has no instance {name!r}.")
        rows.append(places[name][used[name] % len(places[name])])
        used[name] += 1
    return rows


def _order_rows(task: str, split: EncodedSplit, rows: Sequence[int], epoch: int) -> list[int]:
    """Return an epoch's instances in this trainer's order."""
    updates = build_task_batches({task: len(split)}, Training(batch_size=BATCH), SEED, epoch)
    return [rows[example] for (batch,) in updates for example in batch.examples]


class _Fixed:
    """Sampler that yields given rows."""

    def __init__(self, rows: Sequence[int]) -> None:
        self.rows = rows

    def __iter__(self) -> Iterator[int]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


def _build_loader(whole: Any, rows: Sequence[int], config: Any) -> Any:
    """Return the toolkit's training loader with this order of instances."""
    return DataLoader(
        whole,
        batch_size=config.gpu_batch_size,
        sampler=_Fixed(rows),
        collate_fn=whole.collate,
        num_workers=config.num_workers,
        pin_memory=config.num_workers > 1 and torch.cuda.is_available(),
    )


def _limit_loader(
    work: Work, datasets: dict[str, Any], name: str, limit: int | None, config: Any
) -> tuple[dict[str, Any], int]:
    """Return the toolkit's evaluation loader for these instances, unchanged without a limit."""
    whole = datasets["datasets"][0]
    if limit is None or limit >= len(whole):
        return datasets, len(whole)
    rows = _find_rows(whole, _read_split(work, name, limit))
    loader = DataLoader(
        Subset(whole, rows),
        batch_size=config.gpu_batch_size,
        collate_fn=whole.collate,
        num_workers=config.num_workers,
    )
    return {**datasets, "loaders": [loader]}, len(rows)


# Otherwise each loader process would print warnings.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
