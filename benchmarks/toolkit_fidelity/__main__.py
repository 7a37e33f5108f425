"""Check that `fidelity: tlidb` trains like the paper's toolkit.

python -m benchmarks.toolkit_fidelity --toolkit ../TLiDB --release ../feta --encoder DIR --work DIR
python -m benchmarks.toolkit_fidelity ... --inputs DailyDialog Friends

Runs the toolkit's code from the given folder and this package's trainer on the same instances. Both
start from the same weights (checkpoint and heads), read batches in the same order, have no dropout
before the head (the dropout of the pre-trained model stays configured, but neither side applies
it), and use float32 on the CPU. Compares the losses of the first updates, the weights after them,
and the predictions on the first dev instances. Sampled answers cannot agree, so the toolkit's
decoding is set to greedy, and if there are several gold answers both sides get the first one.

Decoders and encoder-decoders are small random models unless folders are given. None of the
toolkit's code is copied here. These parts are replaced at run time: the source of checkpoints, the
order of instances, and the initial weights of heads. For T5, two defaults of the library at that
time are restored: it masked padding, and an answer's 20 tokens included the first.
"""

from __future__ import annotations

import argparse
import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import torch

from benchmarks.toolkit_fidelity.ours import train_ours
from benchmarks.toolkit_fidelity.side import LENGTHS, RATE, SEED, UPDATES, Side
from benchmarks.toolkit_fidelity.theirs import train_theirs
from benchmarks.training_speed import weights
from benchmarks.training_speed.toolkit import import_toolkit
from tasktransfer.core.fidelity import FIDELITIES, Fidelity
from tasktransfer.core.nodes import Data, Stage
from tasktransfer.core.specs import Family, ModelSpec, Selection, Training
from tasktransfer.data.cache import cache_dataset, read_instances
from tasktransfer.datasets import DATASETS, get_task
from tasktransfer.encoding.encode import encode_dataset
from tasktransfer.tasks.card import Instance, Task
from tasktransfer.tasks.toolkit_texts import build_encoder_texts, build_prompt_text

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


def compare_sides(one: Side, other: Side, tasks: Mapping[str, Task]) -> dict[str, Any]:
    """Compare two trainings.

    Returns the largest relative differences of losses, of weights and of their changes, and the
    fraction of predictions that agree.
    """
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
        task: _compute_agreement(tasks[task], one.predictions[task], other.predictions[task])
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


def _compute_agreement(task: Task, ours: Sequence[Any], theirs: Sequence[Any]) -> float:
    def simplify_answer(answer: tuple[str, ...]) -> tuple[str, ...]:
        if task.kind == "span":
            # The toolkit joins lower-cased word pieces, so a span that begins within a word begins
            # with "##".
            return tuple("".join(text.lower().removeprefix("##").split()) for text in answer)
        known = [text if text in task.labels else "(no label)" for text in answer]
        return tuple(known)

    same = [simplify_answer(a) == simplify_answer(b) for a, b in zip(ours, theirs, strict=True)]
    return sum(same) / len(same)


def _build_stage(family: Family, dataset: str, tasks: Sequence[str], fidelity: Fidelity) -> Stage:
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


def _prepare_checkpoint(
    chosen: argparse.Namespace, family: Family, instances: Path, stage: Stage
) -> Path:
    out = Path(chosen.work / f"{family}-{stage.dataset}")
    given = getattr(chosen, family)
    if out.exists():
        return out
    if given is None:
        texts = weights.build_texts(instances, stage.dataset, stage.train_tasks)
        given = chosen.work / f"random-{out.name}"
        weights.write_random_model(family, chosen.shapes, texts, None, given)
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


def run_case(
    chosen: argparse.Namespace, family: Family, case: str, fidelity: Fidelity
) -> dict[str, Any]:
    """Measure one case."""
    dataset, tasks = CASES[case]
    if chosen.tasks:
        dataset, tasks = chosen.dataset, tuple(chosen.tasks)
    stage = _build_stage(family, dataset, tasks, fidelity)
    instances = chosen.work / f"instances-{dataset}"
    if not instances.exists():
        cache_dataset(dataset, chosen.release, True, instances)
    checkpoint = _prepare_checkpoint(chosen, family, instances, stage)
    several = "+".join(get_task(dataset, task).short for task in stage.tasks)
    encoded = chosen.work / f"encoded-{dataset}-{family}-{several}"
    if not encoded.exists():
        encode_dataset(
            instances, dataset, stage.tasks, str(checkpoint), None, family,
            LENGTHS[family], encoded, fidelity=fidelity,
        )  # fmt: skip
    one, epochs, heads = train_ours(stage, encoded, checkpoint, chosen.updates)
    heads = copy.deepcopy(heads)
    other = train_theirs(chosen, stage, encoded, checkpoint, epochs, heads, chosen.updates)
    compared = compare_sides(one, other, {name: get_task(dataset, name) for name in tasks})
    return {"family": family, "case": case, "tasks": list(tasks), **compared}


def compare_inputs(chosen: argparse.Namespace, dataset: str) -> Iterator[dict[str, Any]]:
    """Count the training inputs of each task that differ from the toolkit's before tokenization.

    Inputs of encoders and of text-to-text models are compared character by character.
    """
    import_toolkit(chosen.toolkit)
    from tlidb.TLiDB.datasets.get_dataset import (  # type: ignore[import-not-found]  # noqa: PLC0415
        get_dataset,
    )

    instances = chosen.work / f"instances-{dataset}"
    if not instances.exists():
        cache_dataset(dataset, chosen.release, True, instances)
    for task, card in DATASETS[dataset].tasks.items():
        rows = read_instances(instances, task, "train")
        for kind, most in (("Encoder", 0), ("Decoder", 512)):  # as in its configs
            whole = get_dataset(
                dataset=dataset, task=task, dataset_folder=str(chosen.release), model_type=kind,
                max_dialogue_length=most, split="train", few_shot_percent=0.1,
            )  # fmt: skip
            theirs, *_ = whole.collate([whole[row] for row in range(len(whole))])
            made = list(_build_inputs(card, rows, kind == "Encoder"))
            differ = sum(a != b for a, b in zip(made, theirs, strict=True))
            yield {"task": task, "of": kind, "inputs": len(made), "differ": differ}


def _build_inputs(card: Task, rows: Sequence[Instance], encoder: bool) -> Iterator[str | list[str]]:
    forms = card.toolkit
    if forms is None:
        raise SystemExit(f"{card.name}: The toolkit has no such task.")
    for row in rows:
        if encoder:
            texts = [each.text for each in build_encoder_texts(forms, card, row, "[SEP]")]
            yield texts if card.kind == "multiple_choice" else texts[0]
        else:
            outputs: list[int | None] = list(range(len(card.outputs))) or [None]
            yield from (build_prompt_text(forms, card, row, output) for output in outputs)


def main() -> None:
    """Measure the requested cases, and print one JSON line per case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--toolkit", type=Path, required=True, help="a clone of TLiDB")
    parser.add_argument("--release", type=Path, required=True, help="holds TLiDB_<Set>/")
    parser.add_argument(
        "--work", type=Path, required=True, help="folder for caches and checkpoints"
    )
    for family in get_args(Family):
        parser.add_argument(f"--{family}", type=Path, help="a checkpoint's folder")
    parser.add_argument("--shapes", default="tiny", choices=list(weights.LAYERS_HIDDEN_HEADS))
    parser.add_argument("--families", nargs="+", default=list(get_args(Family)))
    parser.add_argument("--cases", nargs="+", default=list(CASES))
    parser.add_argument("--dataset", default="DailyDialog", help="of --tasks")
    parser.add_argument("--tasks", nargs="+", help="tasks that replace a case's own")
    parser.add_argument("--updates", type=int, default=UPDATES)
    parser.add_argument("--without", nargs="*", default=[], help="switches left at their default")
    parser.add_argument("--inputs", nargs="*", help="compare only the inputs of these datasets")
    chosen = parser.parse_args()
    if chosen.inputs:
        for dataset in chosen.inputs:
            for line in compare_inputs(chosen, dataset):
                print(json.dumps(line), flush=True)
        return
    torch.set_num_threads(2)
    default = Fidelity()
    switched = {name: getattr(default, name) for name in chosen.without}
    fidelity = replace(FIDELITIES["tlidb"], **{"several_answers": "first", **switched})
    for family in chosen.families:
        for case in chosen.cases:
            print(json.dumps(run_case(chosen, family, case, fidelity)), flush=True)


if __name__ == "__main__":
    main()
