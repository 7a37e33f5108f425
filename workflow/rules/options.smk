# What the jobs are asked to do and given: outputs, params, resources.

import shlex
import tempfile
from pathlib import Path

from tasktransfer.core.digests import canonical_json, digest_of
from tasktransfer.core.stage import STAGE_KINDS
from tasktransfer.operate.forecast.estimate import Estimates


# Options take `input`, which tells Snakemake not to compare them: what a job makes is in its path
# already, and where things are or what the study is called starts no training over.
def study_options(wildcards, input):
    return OPENED_BY


def train_options(wildcards, input, output):
    study, stage = latest(), stage_of(wildcards)
    words = ["--stage", canonical_json(stage.to_json())]
    words += ["--encoded", ENCODED[stage.dataset, stage.model.name]]
    words += ["--start", study.start(stage)]
    revision = study.start_revision(stage)
    words += ["--revision", revision] if revision else []
    words += ["--save-checkpoint"] if "checkpoint" in output.keys() else []
    return f"{OPENED_BY} {shlex.join([*words, '--out', study.folder(stage)])}"


def tiny_world_option(wildcards):
    cache = instances_folder(wildcards)
    return (
        "--tiny-world" if needs.is_tiny_world(STUDY, wildcards.dataset, cache) else ""
    )


# Jobs of a batch system get the GPU that they ask for, whatever the machine has that submits them.
ESTIMATES = Estimates(STUDY, None if CALL.on_one_machine else "cuda")


def minutes(wildcards, attempt):
    """What a training asks a batch system for, twice as much with every attempt."""
    return ESTIMATES.runtime_minutes(stage_of(wildcards), attempt)


def megabytes(wildcards, attempt):
    return ESTIMATES.memory_mb(stage_of(wildcards), attempt)


def count_attempts(wildcards, attempt):
    """Which attempt at a job this is: the trainer tries bad input once only."""
    return attempt


def asked_of_batch_system():
    """Minutes and memory, as resources of a rule. On one machine nobody reads them, unless memory
    is shared out with `--resources mem_mb=...`, and they would take a fifth of the start; the
    folder for temporary files is the same for all jobs there, and need not be looked up for each.
    """
    if CALL.on_one_machine and "mem_mb" not in CALL.limited:
        return {"tmpdir": tempfile.gettempdir()}
    return {"runtime": minutes, "mem_mb": megabytes}


def stage_folder(kind):
    """The path of a kind of stage, with wildcards."""
    return f"{RESULTS}/stages/{kind}/{{name}}/seed{{seed}}-{{digest}}"


def stage_outputs(kind):
    """Record and predictions (a pretrain is not scored: its target is not known), and the checkpoint:
    kept, or removed once no stage needs it, or not made."""
    folder = stage_folder(kind)
    outputs = {"record": update(f"{folder}/metrics.json")}
    if kind != "pretrain":
        outputs["predictions"] = update(f"{folder}/predictions.parquet")
    if STUDY.makes_checkpoint(kind):
        weights = directory(update(f"{folder}/checkpoint"))
        outputs["checkpoint"] = weights if STUDY.keeps(kind) else temp(weights)
    return outputs


def files(folder, names, endings):
    return [f"{folder}/{name}.{ending}" for name in names for ending in endings]


def figures_of(dataset):
    """The figures that a dataset of this study always has, by name."""
    counts = {len(run.sources) for run in STUDY.plan.runs if run.dataset == dataset}
    return outputs.figures_of(counts, lengths=bool(DATA_TABLES))


def captioned(file, category, caption, **labels):
    """An output that `snakemake --report` shows."""
    return report(
        file,
        caption=f"../report/{caption}.rst",
        category=category,
        labels=labels,
    )
