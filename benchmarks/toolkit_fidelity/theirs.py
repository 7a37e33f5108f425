"""Training with the toolkit's own code, from a clone of it."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch.utils.data import DataLoader

from benchmarks.toolkit_fidelity.side import (
    SEED,
    EnoughError,
    Side,
    select_first_instances,
)
from benchmarks.training_speed.toolkit import NAMES, import_toolkit, load_locally
from tasktransfer.core.nodes import Stage
from tasktransfer.datasets import get_task
from tasktransfer.encoding.encoded import EncodedSplit, read_split
from tasktransfer.tasks.card import Task
from tasktransfer.training.samplers import Update


def train_theirs(
    chosen: argparse.Namespace,
    stage: Stage,
    encoded: Path,
    checkpoint: Path,
    epochs: Sequence[Sequence[Update]],
    heads: Mapping[str, torch.Tensor],
    count: int,
) -> Side:
    """Train with the toolkit's code, batches in the order of ``epochs``."""
    config = _parse_options(chosen, stage)
    load_locally(stage.model.family, str(checkpoint))
    from tlidb.examples import (  # type: ignore[import-not-found]  # noqa: PLC0415
        run_experiment,
        train,
    )
    from tlidb.TLiDB.data_loaders import (  # type: ignore[import-not-found]  # noqa: PLC0415
        data_loaders,
    )

    names = [stage.dataset] * len(stage.train_tasks)
    run_experiment.set_seed(SEED)
    data = {
        split: run_experiment.load_datasets_split(split, list(stage.train_tasks), names, config)
        for split in ("train", "dev")
    }
    algorithm = run_experiment.initialize_algorithm(config, data)
    module = algorithm.model.model
    _set_heads(algorithm.model, stage, heads)
    before = _copy_weights(algorithm.model, stage)
    rows = {
        task: _find_rows(whole, read_split(encoded, task, "train"), get_task(stage.dataset, task))
        for task, whole in zip(stage.train_tasks, data["train"]["datasets"], strict=True)
    }
    batches: list[tuple[str, float]] = []
    after: dict[str, torch.Tensor] = {}
    step = algorithm.optimizer.step

    def count_step(*given: Any, **named: Any) -> Any:
        made = step(*given, **named)
        batches.append(("", 0.0))
        if sum(not task for task, _ in batches) == count:
            after.update(_copy_weights(algorithm.model, stage))
            raise EnoughError
        return made

    process = algorithm.process_batch
    answers = sys.modules[f"tlidb.examples.models.{NAMES[stage.model.family]}"]
    answers.random = SimpleNamespace(  # type: ignore[attr-defined]
        choice=lambda several: several[0], randint=lambda first, _: first
    )

    def record_loss(batch: Any) -> Any:
        results, loss = process(batch)
        batches.append((batch[2]["task"], float(loss.detach())))
        return results, loss

    algorithm.optimizer.step, algorithm.process_batch = count_step, record_loss
    logger = run_experiment.Logger(mode="w")
    try:
        for order in _iterate_orders(epochs, stage.training.fidelity.batches_per_update):
            by_task: dict[str, list[list[int]]] = {task: [] for task in stage.train_tasks}
            for task, examples in order:
                by_task[task].append([rows[task][u] for u in examples])
            data["train"]["loaders"] = [
                DataLoader(whole, batch_sampler=by_task[task], collate_fn=whole.collate)
                for task, whole in zip(stage.train_tasks, data["train"]["datasets"], strict=True)
            ]
            places = iter([stage.train_tasks.index(task) for task, _ in order])
            data_loaders.random = SimpleNamespace(choices=lambda *_, p=places, **__: [next(p)])
            train.run_epoch(algorithm, data["train"], config, logger, train=True)
    except EnoughError:
        pass
    data_loaders.random = random
    algorithm.process_batch = process
    assert module is algorithm.model.model
    predictions = _predict(stage, encoded, data["dev"], algorithm)
    return Side(_group_losses(batches), before, after, predictions)


def _parse_options(chosen: argparse.Namespace, stage: Stage) -> Any:
    """Return the options from the toolkit's parser, with greedy decoding instead of sampling."""
    parse_args = import_toolkit(chosen.toolkit)
    several = ["--multitask"] if len(stage.train_tasks) > 1 else []
    name = NAMES[stage.model.family]
    sources = stage.train_tasks[:-1] if several else stage.train_tasks
    sys.argv = [
        "run_experiment.py", "--model_config", name, "--seed", str(SEED), "--cpu_only",
        "--data_dir", str(chosen.release), "--few_shot_percent", "0.1", "--num_workers", "0",
        "--source_tasks", *sources, "--source_datasets", *[stage.dataset] * len(sources),
        "--target_tasks", stage.train_tasks[-1], "--target_datasets", stage.dataset, *several,
    ]  # fmt: skip
    config = parse_args()
    config.progress_bar = True
    if hasattr(config, "generation_config"):
        greedy: dict[str, Any] = {"do_sample": False, "num_beams": 1}
        if name == "t5":  # the library's default when the toolkit was written
            greedy["max_length"] = 20
        config.generation_config = {**config.generation_config, **greedy}
    return config


def _set_heads(model: Any, stage: Stage, heads: Mapping[str, torch.Tensor]) -> None:
    with torch.no_grad():
        for name, tensor in heads.items():
            _, task, kind = name.split(".")
            head = model.classifiers[f"{task}_{stage.dataset}"]["classifier"]
            getattr(head, kind).copy_(tensor)


def _copy_weights(model: Any, stage: Stage) -> dict[str, torch.Tensor]:
    """Return the toolkit's weights under this package's names."""
    prefix = "backbone." if stage.model.family == "encoder" else ""
    made = {prefix + name: p.detach().clone() for name, p in model.model.named_parameters()}
    for task in stage.tasks if prefix else ():
        head = model.classifiers[f"{task}_{stage.dataset}"]["classifier"]
        made |= {f"heads.{task}.{k}": p.detach().clone() for k, p in head.named_parameters()}
    return made


def _find_rows(whole: Any, split: EncodedSplit, task: Task) -> list[int]:
    """Return the position of each of our examples in the toolkit's data set. Ids may repeat."""
    places: dict[str, list[int]] = {}
    for row, metadata in enumerate(whole.metadata_array):
        name = metadata["instance_id"]
        places.setdefault("+".join(name) if isinstance(name, list) else name, []).append(row)
    used = dict.fromkeys(places, 0)
    rows = []
    for example in range(len(split)):
        name = split.ids[int(split.instance[example])]
        if task.kind == "multi_output":
            each = [f"{name}_{trait}" for trait in task.outputs]
            one = len(split) > len(split.ids)
            name = each[int(split.output[example])] if one else "+".join(each)
        rows.append(places[name][used[name] % len(places[name])])
        used[name] += 1
    return rows


def _iterate_orders(
    epochs: Sequence[Sequence[Update]], several: int
) -> Iterator[list[tuple[str, tuple[int, ...]]]]:
    """Return the toolkit's batches for each epoch.

    Batches left over at the end of its epoch are in the next epoch's first update here.
    """
    carried = [list(updates[0][: len(updates[0]) - several]) for updates in epochs]
    for number, updates in enumerate(epochs[:-1]):
        own = [batch for update in updates for batch in update][len(carried[number]) :]
        yield [(batch.task, batch.examples) for batch in (*own, *carried[number + 1])]


def _group_losses(batches: Sequence[tuple[str, float]]) -> list[dict[str, float]]:
    """Return each update's mean loss by task, from losses with a mark after each update."""
    updates: list[dict[str, float]] = []
    losses: dict[str, list[float]] = {}
    for task, loss in batches:
        if task:
            losses.setdefault(task, []).append(loss)
        else:
            updates.append({name: sum(each) / len(each) for name, each in losses.items()})
            losses = {}
    return updates


def _predict(stage: Stage, encoded: Path, dev: Any, algorithm: Any) -> dict[str, list[Any]]:
    algorithm.eval()
    made = {}
    generate = getattr(algorithm.model.model, "generate", None)

    def generate_with_mask(input_ids: torch.Tensor, **named: Any) -> Any:
        """Add the mask that libraries used by default when the toolkit was written."""
        named.setdefault("attention_mask", (input_ids != pad).long())
        return generate(input_ids=input_ids, **named)  # type: ignore[misc]

    if stage.model.family == "encoder_decoder":
        pad, algorithm.model.model.generate = (
            algorithm.model.tokenizer.pad_token_id,
            generate_with_mask,
        )
    for task, whole in zip(stage.train_tasks, dev["datasets"], strict=True):
        card = get_task(stage.dataset, task)
        split = select_first_instances(read_split(encoded, task, "dev"))
        rows = _find_rows(whole, split, card)
        answers: list[Any] = []
        for begin in range(0, len(rows), 20):
            texts, right, metadata = whole.collate([whole[row] for row in rows[begin : begin + 20]])
            metadata |= {
                "task": task,
                "dataset_name": stage.dataset,
                "task_metadata": whole.task_metadata,
            }
            answers += list(algorithm.evaluate((texts, right, metadata))["y_pred"])
        made[task] = [_convert_answer(card, answer) for answer in answers]
        if len(answers) > len(split.ids):  # one per trait
            several = len(card.outputs)
            flat = made[task]
            made[task] = [
                tuple(a for (a,) in flat[i : i + several]) for i in range(0, len(flat), several)
            ]
    return made


def _convert_answer(card: Task, answer: Any) -> tuple[str, ...]:
    if isinstance(answer, str):
        return (answer,)
    if card.kind == "multi_label":
        return tuple(label for label, yes in zip(card.labels, answer, strict=True) if yes)
    if isinstance(answer, torch.Tensor) and answer.dim():
        return tuple(card.labels[int(each)] for each in answer)
    return (card.labels[int(answer)] if int(answer) >= 0 else "(no label)",)
