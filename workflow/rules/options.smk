# Outputs, params and resources of the jobs.

import tempfile
from pathlib import Path

from tasktransfer.core.identity import compute_digest
from tasktransfer.operate.forecast.estimate import Estimates


# Functions of options take `input`, which tells Snakemake not to compare their values. The path of a
# job's output already identifies its content, so new locations or names of studies repeat no run.
def study_options(wildcards, input):
    return OPENED_BY


def encode_options(wildcards):
    data, model = latest().encoded_folders[encoded_folder(wildcards)]
    which = f"--node {data.digest[:12]}" if data.recipe else f"--dataset {data.name}"
    return f"{OPENED_BY} {which} --model {model}"


def collected_for(wildcards):
    """Return a digest of the study and its runs. Tables contain both, so a change rebuilds them."""
    study = latest()
    runs = [
        [run.method, run.model, run.seed, dict(run.about)] for run in study.plan.runs
    ]
    return compute_digest(
        [OUTPUTS.version, study.config.digest, runs, records(wildcards)]
    )


def node_options(wildcards, input):
    return f"{OPENED_BY} --node {wildcards.digest}"


def devices(wildcards):
    return int(needs.runs_model(node_of(wildcards)))


def tiny_world_option(wildcards):
    cache = instances_folder(wildcards)
    return (
        "--tiny-world" if needs.is_tiny_world(STUDY, wildcards.dataset, cache) else ""
    )


# Jobs of a batch system get a GPU, whether or not the submitting machine has one.
ESTIMATES = Estimates(STUDY, None if CALL.on_one_machine else "cuda")


def minutes(wildcards, attempt):
    """Return the minutes that a run requests from a batch system, doubled with every attempt."""
    return ESTIMATES.compute_runtime_minutes(node_of(wildcards), attempt)


def megabytes(wildcards, attempt):
    return ESTIMATES.compute_memory_mb(node_of(wildcards), attempt)


def asked_of_batch_system():
    """Return minutes and memory, as resources of a rule.

    On one machine they are not used, unless memory is limited by `--resources mem_mb=...`, and would
    take a fifth of the start-up time. The temporary folder is the same for all jobs there, and need
    not be looked up for each job.
    """
    if CALL.on_one_machine and "mem_mb" not in CALL.limited:
        return {"tmpdir": tempfile.gettempdir()}
    return {"runtime": minutes, "mem_mb": megabytes}


def stage_folder(kind):
    """Return the path of a kind of stage, with wildcards."""
    return f"{RESULTS}/stages/{kind}/{{name}}/seed{{seed}}-{{digest}}"


def stage_outputs(kind):
    """Return the outputs of a kind of stage.

    They are the record, the predictions if every stage of the kind is tested, and the checkpoint,
    which is kept, temporary or not written.
    """
    folder = stage_folder(kind)
    outputs = {"record": update(f"{folder}/metrics.json")}
    if STUDY.is_tested(kind):
        outputs["predictions"] = update(f"{folder}/rows.parquet")
    if STUDY.makes_checkpoint(kind):
        weights = directory(update(f"{folder}/checkpoint"))
        outputs["checkpoint"] = (
            weights if STUDY.keeps_checkpoints(kind) else temp(weights)
        )
    return outputs


SHOWN = {f"{RESULTS}/{shown.file}": shown for shown in OUTPUTS.shown}


def captioned(file):
    """Return an output with its caption and category for `snakemake --report`."""
    if file not in SHOWN:
        return file
    shown = SHOWN[file]
    caption = f"../report/{shown.caption}.rst" if shown.caption else None
    return report(
        file, caption=caption, category=shown.category, labels=dict(shown.labels)
    )
