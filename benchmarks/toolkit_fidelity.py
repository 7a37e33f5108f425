"""Does `fidelity: tlidb` train what the paper's toolkit trains?

python -m benchmarks.toolkit_fidelity --toolkit ../TLiDB --release ../feta --encoder DIR --work DIR
python -m benchmarks.toolkit_fidelity ... --inputs DailyDialog Friends

Drives the toolkit's own code, from the folder given, and this package's trainer, on the same
instances: equal start (a checkpoint and the heads), equal order, dropout before the head at 0 on
both sides (backbones keep theirs, which no side may use), float32 on the CPU. Compared are the
losses of the first updates, the weights after them and the predictions on the first dev instances.
What is drawn cannot agree: the toolkit's sampling is set to greedy for these, and of several right
answers both sides are given the first.

Decoders and encoder-decoders are small random models unless folders are given. Nothing of the
toolkit stands here; what is replaced in it at run time: where it loads checkpoints from, the order
in which it reads, its heads' first weights, and for T5 two things that the library did by itself
when the toolkit was written: it masked padding, and an answer's 20 tokens counted the first.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import torch
from torch.utils.data import DataLoader

from benchmarks.training_speed import weights
from benchmarks.training_speed.toolkit import NAMES, import_toolkit, load_locally
from tasktransfer.core.fidelity import FIDELITIES, Fidelity
from tasktransfer.core.nodes import Data, Stage
from tasktransfer.core.specs import Family, ModelSpec, Selection, Training
from tasktransfer.data.cache import prepare, read_instances
from tasktransfer.datasets import DATASETS, get_task
from tasktransfer.models.encode import encode_dataset
from tasktransfer.models.encoded import EncodedSplit, read_manifest, read_split
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.load import load_model
from tasktransfer.tasks.card import Instance, Task
from tasktransfer.tasks.toolkit_texts import encoder_texts, prompt_text
from tasktransfer.training.evaluate import predict
from tasktransfer.training.loop import train
from tasktransfer.training.memory import TokenBudget
from tasktransfer.training.progress import Progress
from tasktransfer.training.samplers import Schedule, Update
from tasktransfer.training.setup import Setup

UPDATES = 10
DEV_INSTANCES = 20
LENGTHS: dict[Family, int] = {"encoder": 512, "decoder": 1024, "encoder_decoder": 512}
RATE = 3e-5
SEED = 0
CASES = {
    "single": ("DailyDialog", ("dialogue_reasoning_span_extraction",)),
    "multitask": (
        "DailyDialog",
        (
            "dialogue_nli",
            "dialogue_reasoning_commonsense_relation_prediction",
            "dialogue_reasoning_span_extraction",
        ),
    ),
    "friends": (
        "Friends",
        (
            "personality_detection",
            "question_answering",
            "reading_comprehension",
            "relation_extraction",
        ),
    ),
}
CPU = torch.device("cpu")


@dataclass
class Side:
    """What one of the two did: each update's mean loss by task, weights by name before and after,
    and the predictions by task."""

    losses: list[dict[str, float]]
    before: dict[str, torch.Tensor]
    after: dict[str, torch.Tensor]
    predictions: dict[str, list[Any]]


class _EnoughError(Exception):
    """The updates that are compared are done."""


# --- ours ---------------------------------------------------------------------------------------


def ours(
    stage: Stage, encoded: Path, checkpoint: Path, count: int
) -> tuple[Side, list[list[Update]], dict[str, torch.Tensor]]:
    """Train with this package; also the updates of each epoch, and the heads' first weights."""
    model, tasks = _model(stage, encoded, checkpoint)
    splits = {task: read_split(encoded, task, "train") for task in stage.train_tasks}
    dev = {task: _first(read_split(encoded, task, "dev")) for task in stage.select_on}
    before = _weights(model)
    heads = {name: t for name, t in before.items() if name.startswith("heads.")}
    log = _Losses()
    after: dict[str, torch.Tensor] = {}

    def keep(number: int) -> None:
        if number == count:
            after.update(_weights(model))
            raise _EnoughError

    setup = Setup(CPU, TokenBudget(4096, "training"), TokenBudget(4096, "evaluation"))
    with contextlib.suppress(_EnoughError):
        train(model, stage, tasks, splits, dev, setup, log, keep_round=keep)
    predictions = {
        task: predict(model, _first(read_split(encoded, task, "dev")), 4096, setup)
        for task in stage.train_tasks
    }
    return Side(log.losses, before, after, predictions), _epochs(stage, splits, count), heads


class _Losses(Progress):
    """Keeps each round's losses; a round is an update here."""

    def __init__(self) -> None:
        super().__init__(1, "ours", io.StringIO())
        self.losses: list[dict[str, float]] = []

    def round(
        self, number: int, train_loss: Mapping[str, float], score: float, best_round: int
    ) -> None:
        self.losses.append(dict(train_loss))


def _model(stage: Stage, encoded: Path, checkpoint: Path) -> tuple[FamilyModel, dict[str, Task]]:
    tasks = {name: get_task(stage.dataset, name) for name in stage.tasks}
    model = load_model(
        stage.model.family,
        str(checkpoint),
        None,
        tasks,
        read_manifest(encoded),
        encoded / "tokenizer",
        seed=SEED,
        fidelity=stage.training.fidelity,
        loss_on=stage.training.loss_on,
        dropout=None,
        device=CPU,
    )
    return model, tasks


def _weights(model: FamilyModel) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in model.module.named_parameters()}


def _first(split: EncodedSplit) -> EncodedSplit:
    """The first instances of a fixed shuffle, the same on both sides."""
    return split.limited(DEV_INSTANCES)


def _epochs(stage: Stage, splits: Mapping[str, EncodedSplit], count: int) -> list[list[Update]]:
    """The updates of the epochs that ``count`` updates need, and of one more."""
    selection = replace(stage.selection, every=None)
    schedule = Schedule.of(replace(stage, selection=selection), splits)
    epochs: list[list[Update]] = []
    while sum(map(len, epochs[:-1])) < count:
        epochs.append(list(schedule.round(len(epochs) + 1)))
    return epochs


# --- the toolkit --------------------------------------------------------------------------------


def toolkit(
    chosen: argparse.Namespace,
    stage: Stage,
    encoded: Path,
    checkpoint: Path,
    epochs: Sequence[Sequence[Update]],
    heads: Mapping[str, torch.Tensor],
    count: int,
) -> Side:
    """Train with the toolkit's code, batches in the order of ``epochs``."""
    config = _options(chosen, stage)
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
    before = _toolkit_weights(algorithm.model, stage)
    rows = {
        task: _rows(whole, read_split(encoded, task, "train"), get_task(stage.dataset, task))
        for task, whole in zip(stage.train_tasks, data["train"]["datasets"], strict=True)
    }
    batches: list[tuple[str, float]] = []
    after: dict[str, torch.Tensor] = {}
    step = algorithm.optimizer.step

    def counted_step(*given: Any, **named: Any) -> Any:
        made = step(*given, **named)
        batches.append(("", 0.0))
        if sum(not task for task, _ in batches) == count:
            after.update(_toolkit_weights(algorithm.model, stage))
            raise _EnoughError
        return made

    process = algorithm.process_batch
    answers = sys.modules[f"tlidb.examples.models.{NAMES[stage.model.family]}"]
    answers.random = SimpleNamespace(  # type: ignore[attr-defined]
        choice=lambda several: several[0], randint=lambda first, _: first
    )

    def watched(batch: Any) -> Any:
        results, loss = process(batch)
        batches.append((batch[2]["task"], float(loss.detach())))
        return results, loss

    algorithm.optimizer.step, algorithm.process_batch = counted_step, watched
    logger = run_experiment.Logger(mode="w")
    try:
        for order in _orders(epochs, stage.training.fidelity.batches_per_update):
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
    except _EnoughError:
        pass
    data_loaders.random = random
    algorithm.process_batch = process
    assert module is algorithm.model.model
    predictions = _toolkit_predictions(stage, encoded, data["dev"], algorithm)
    return Side(_grouped(batches), before, after, predictions)


def _options(chosen: argparse.Namespace, stage: Stage) -> Any:
    """Its own parser's options; greedy where it would sample."""
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


def _toolkit_weights(model: Any, stage: Stage) -> dict[str, torch.Tensor]:
    """By the names that this package gives them."""
    prefix = "backbone." if stage.model.family == "encoder" else ""
    made = {prefix + name: p.detach().clone() for name, p in model.model.named_parameters()}
    for task in stage.tasks if prefix else ():
        head = model.classifiers[f"{task}_{stage.dataset}"]["classifier"]
        made |= {f"heads.{task}.{k}": p.detach().clone() for k, p in head.named_parameters()}
    return made


def _rows(whole: Any, split: EncodedSplit, task: Task) -> list[int]:
    """Where each of our examples stands in its data set; ids may repeat."""
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


def _orders(
    epochs: Sequence[Sequence[Update]], several: int
) -> Iterator[list[tuple[str, tuple[int, ...]]]]:
    """The batches of each epoch in the toolkit's sense: what it leaves over at an epoch's end
    stands in the next epoch's first update here."""
    carried = [list(updates[0][: len(updates[0]) - several]) for updates in epochs]
    for number, updates in enumerate(epochs[:-1]):
        own = [batch for update in updates for batch in update][len(carried[number]) :]
        yield [(batch.task, batch.examples) for batch in (*own, *carried[number + 1])]


def _grouped(batches: Sequence[tuple[str, float]]) -> list[dict[str, float]]:
    """Each update's mean loss by task, of losses with a mark after each update."""
    updates: list[dict[str, float]] = []
    losses: dict[str, list[float]] = {}
    for task, loss in batches:
        if task:
            losses.setdefault(task, []).append(loss)
        else:
            updates.append({name: sum(each) / len(each) for name, each in losses.items()})
            losses = {}
    return updates


def _toolkit_predictions(
    stage: Stage, encoded: Path, dev: Any, algorithm: Any
) -> dict[str, list[Any]]:
    algorithm.eval()
    made = {}
    generate = getattr(algorithm.model.model, "generate", None)

    def masked(input_ids: torch.Tensor, **named: Any) -> Any:
        """As libraries did when the toolkit was written, where it gives no mask."""
        named.setdefault("attention_mask", (input_ids != pad).long())
        return generate(input_ids=input_ids, **named)  # type: ignore[misc]

    if stage.model.family == "encoder_decoder":
        pad, algorithm.model.model.generate = algorithm.model.tokenizer.pad_token_id, masked
    for task, whole in zip(stage.train_tasks, dev["datasets"], strict=True):
        card = get_task(stage.dataset, task)
        split = _first(read_split(encoded, task, "dev"))
        rows = _rows(whole, split, card)
        answers: list[Any] = []
        for begin in range(0, len(rows), 20):
            texts, right, metadata = whole.collate([whole[row] for row in rows[begin : begin + 20]])
            metadata |= {
                "task": task,
                "dataset_name": stage.dataset,
                "task_metadata": whole.task_metadata,
            }
            answers += list(algorithm.evaluate((texts, right, metadata))["y_pred"])
        made[task] = [_as_ours(card, answer) for answer in answers]
        if len(answers) > len(split.ids):  # a trait each
            several = len(card.outputs)
            flat = made[task]
            made[task] = [
                tuple(a for (a,) in flat[i : i + several]) for i in range(0, len(flat), several)
            ]
    return made


def _as_ours(card: Task, answer: Any) -> tuple[str, ...]:
    if isinstance(answer, str):
        return (answer,)
    if card.kind == "multi_label":
        return tuple(label for label, yes in zip(card.labels, answer, strict=True) if yes)
    if isinstance(answer, torch.Tensor) and answer.dim():
        return tuple(card.labels[int(each)] for each in answer)
    return (card.labels[int(answer)] if int(answer) >= 0 else "(no label)",)


# --- comparing ----------------------------------------------------------------------------------


def compare(one: Side, other: Side, tasks: Mapping[str, Task]) -> dict[str, Any]:
    """The largest relative differences of losses, of weights and of their changes, and the share
    of equal predictions."""
    losses = [
        abs(a[task] - b[task]) / abs(b[task])
        for a, b in zip(one.losses, other.losses, strict=True)
        for task in b
    ]
    shared = [name for name in one.after if name in other.after]
    both = [(one.after[name], other.after[name], other.before[name]) for name in shared]
    apart = sum(float((a - b).square().sum()) for a, b, _ in both) ** 0.5
    moved = sum(float((b - start).square().sum()) for _, b, start in both) ** 0.5
    size = sum(float(b.square().sum()) for _, b, _ in both) ** 0.5
    equal = {
        task: _equal(tasks[task], one.predictions[task], other.predictions[task])
        for task in other.predictions
    }
    return {
        "updates": len(losses),
        "loss": max(losses),
        "first_loss": losses[0],
        "weights": apart / size,
        "change": apart / moved,
        "compared": f"{len(shared)} of {len(other.after)}",
        "equal_predictions": equal,
    }


def _equal(task: Task, ours: Sequence[Any], theirs: Sequence[Any]) -> float:
    def plain(answer: tuple[str, ...]) -> tuple[str, ...]:
        if task.kind == "span":
            # The toolkit's are put together from lower-cased word pieces: one that begins within a
            # word begins with "##".
            return tuple("".join(text.lower().removeprefix("##").split()) for text in answer)
        known = [text if text in task.labels else "(no label)" for text in answer]
        return tuple(known)

    same = [plain(a) == plain(b) for a, b in zip(ours, theirs, strict=True)]
    return sum(same) / len(same)


# --- cases --------------------------------------------------------------------------------------


def _stage(family: Family, dataset: str, tasks: Sequence[str], fidelity: Fidelity) -> Stage:
    names = tuple(sorted(tasks))
    return Stage(
        kind="baseline",
        label="comparison",
        data=Data(dataset, "comparison"),
        model=ModelSpec("model", family, "comparison", LENGTHS[family]),
        train_tasks=names,
        selection=Selection(names[:1], measure="loss", every=1),
        training=Training(
            learning_rate=RATE,
            epochs=100,
            precision="float32",
            loss_on="sequence",
            fidelity=fidelity,
        ),
        seed=SEED,
    )


def _checkpoint(chosen: argparse.Namespace, family: Family, instances: Path, stage: Stage) -> Path:
    out = Path(chosen.work / f"{family}-{stage.dataset}")
    given = getattr(chosen, family)
    if out.exists():
        return out
    if given is None:
        texts = weights.texts_of(instances, stage.dataset, stage.train_tasks)
        given = chosen.work / f"random-{out.name}"
        weights.make(family, chosen.shapes, texts, None, given)
    if family != "encoder":
        return Path(given)
    from transformers import AutoConfig, AutoModel, AutoTokenizer  # noqa: PLC0415  # slow

    config = AutoConfig.from_pretrained(given)
    config.hidden_dropout_prob = 0.0  # also the toolkit's rate before its heads
    AutoModel.from_pretrained(given, config=config).save_pretrained(out)
    tokenizer = AutoTokenizer.from_pretrained(given)
    tokenizer.model_max_length = LENGTHS[family]
    tokenizer.save_pretrained(out)
    return out


def run(
    chosen: argparse.Namespace, family: Family, case: str, fidelity: Fidelity
) -> dict[str, Any]:
    """Measure one case."""
    dataset, tasks = CASES[case]
    if chosen.tasks:
        dataset, tasks = chosen.dataset, tuple(chosen.tasks)
    stage = _stage(family, dataset, tasks, fidelity)
    instances = chosen.work / f"instances-{dataset}"
    if not instances.exists():
        prepare(dataset, chosen.release, True, instances)
    checkpoint = _checkpoint(chosen, family, instances, stage)
    several = "+".join(get_task(dataset, task).short for task in stage.tasks)
    encoded = chosen.work / f"encoded-{dataset}-{family}-{several}"
    if not encoded.exists():
        encode_dataset(
            instances, dataset, stage.tasks, str(checkpoint), None, family,
            LENGTHS[family], encoded, fidelity=fidelity,
        )  # fmt: skip
    one, epochs, heads = ours(stage, encoded, checkpoint, chosen.updates)
    heads = copy.deepcopy(heads)
    other = toolkit(chosen, stage, encoded, checkpoint, epochs, heads, chosen.updates)
    compared = compare(one, other, {name: get_task(dataset, name) for name in tasks})
    return {"family": family, "case": case, "tasks": list(tasks), **compared}


def inputs(chosen: argparse.Namespace, dataset: str) -> Iterator[dict[str, Any]]:
    """How many training inputs of each task differ from the toolkit's in any character, before
    they are tokenised: an encoder's, and those of text-to-text models."""
    import_toolkit(chosen.toolkit)
    from tlidb.TLiDB.datasets.get_dataset import (  # type: ignore[import-not-found]  # noqa: PLC0415
        get_dataset,
    )

    instances = chosen.work / f"instances-{dataset}"
    if not instances.exists():
        prepare(dataset, chosen.release, True, instances)
    for task, card in DATASETS[dataset].tasks.items():
        rows = read_instances(instances, task, "train")
        for kind, most in (("Encoder", 0), ("Decoder", 512)):  # as in its configs
            whole = get_dataset(
                dataset=dataset, task=task, dataset_folder=str(chosen.release), model_type=kind,
                max_dialogue_length=most, split="train", few_shot_percent=0.1,
            )  # fmt: skip
            theirs, *_ = whole.collate([whole[row] for row in range(len(whole))])
            made = list(_inputs(card, rows, kind == "Encoder"))
            differ = sum(a != b for a, b in zip(made, theirs, strict=True))
            yield {"task": task, "of": kind, "inputs": len(made), "differ": differ}


def _inputs(card: Task, rows: Sequence[Instance], encoder: bool) -> Iterator[str | list[str]]:
    forms = card.toolkit
    if forms is None:
        raise SystemExit(f"{card.name}: the toolkit has no such task")
    for row in rows:
        if encoder:
            texts = [each.text for each in encoder_texts(forms, card, row, "[SEP]")]
            yield texts if card.kind == "multiple_choice" else texts[0]
        else:
            outputs: list[int | None] = list(range(len(card.outputs))) or [None]
            yield from (prompt_text(forms, card, row, output) for output in outputs)


def main() -> None:
    """Measure the cases asked for, a JSON line each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--toolkit", type=Path, required=True, help="a clone of TLiDB")
    parser.add_argument("--release", type=Path, required=True, help="holds TLiDB_<Set>/")
    parser.add_argument("--work", type=Path, required=True, help="for caches and checkpoints")
    for family in get_args(Family):
        parser.add_argument(f"--{family}", type=Path, help="a checkpoint's folder")
    parser.add_argument("--shapes", default="tiny", choices=list(weights.LAYERS_HIDDEN_HEADS))
    parser.add_argument("--families", nargs="+", default=list(get_args(Family)))
    parser.add_argument("--cases", nargs="+", default=list(CASES))
    parser.add_argument("--dataset", default="DailyDialog", help="of --tasks")
    parser.add_argument("--tasks", nargs="+", help="instead of a case's own")
    parser.add_argument("--updates", type=int, default=UPDATES)
    parser.add_argument("--without", nargs="*", default=[], help="switches left at their default")
    parser.add_argument("--inputs", nargs="*", help="compare inputs alone, of these datasets")
    chosen = parser.parse_args()
    if chosen.inputs:
        for dataset in chosen.inputs:
            for line in inputs(chosen, dataset):
                print(json.dumps(line), flush=True)
        return
    torch.set_num_threads(2)
    default = Fidelity()
    switched = {name: getattr(default, name) for name in chosen.without}
    fidelity = replace(FIDELITIES["tlidb"], **{"several_answers": "first", **switched})
    for family in chosen.families:
        for case in chosen.cases:
            print(json.dumps(run(chosen, family, case, fidelity)), flush=True)


if __name__ == "__main__":
    main()
