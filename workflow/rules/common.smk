# Opens the study and looks things up in it. No rules here.

import atexit
import gc
import inspect
import os
import shlex
import sys
import tempfile
import time
from pathlib import Path

from snakemake.common import overwrite_function_params
from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.resources import Resource
from snakemake.settings.types import RerunTrigger

from tasktransfer.config.overrides import from_texts
from tasktransfer.errors import TaskTransferError
from tasktransfer.results.finished import damage_of, is_finished, is_whole, keep_checks
from tasktransfer.operate.forecast.estimate import Estimates
from tasktransfer.operate.lacking import refuse_lacking
from tasktransfer.core.digests import canonical_json, digest_of
from tasktransfer.results.study import open_study
from tasktransfer.datasets import DATASETS


def config_file():
    """The file given with --configfile, else the config.yaml beside the Snakefile.

    There is no `configfile:` directive: Snakemake would lay a preset over it key by key, and keys
    that the preset leaves out would come from config.yaml instead of from the defaults.
    """
    given = workflow.overwrite_configfiles
    if len(given) > 1:
        raise WorkflowError(f"give one --configfile, a whole study, not {len(given)}")
    path = Path(given[0] if given else Path(workflow.basedir, "config.yaml"))
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def opened():
    """The study, with `--config key=value` laid over its file, and nothing that its trainings need
    missing in the data. (Jobs of a batch system are workflows too, and need not ask again.)
    """
    try:
        study = open_study(config_file(), from_texts(workflow.config_settings.config))
        if workflow.is_main_process:
            refuse_lacking(study)
        return study
    except TaskTransferError as error:
        raise WorkflowError(str(error)) from None


def is_news(line):
    """Outputs are flagged `update` so that Snakemake never removes them (train.smk, figures.smk). It
    then says of each output of a failed job that no earlier version is there to be put back.
    """
    return not line.getMessage().startswith("Cannot restore ")


logger.addFilter(is_news)


# A DAG of thousands of jobs is millions of objects that stay, and looking through them for garbage
# takes a tenth of the start. It begins when the first job does (collect_garbage).
gc.disable()

STUDY = opened()
RESULTS = STUDY.config.results
LATEST = {"study": STUDY}
DAMAGED = {}  # record -> (when it was changed, what is wrong with it)
OPENED_BY = STUDY.arguments()

if workflow.is_main_process:
    atexit.register(keep_checks, STUDY)

# (dataset, model) -> the folder of token ids. Looked up for every training, so computed once.
ENCODED = {
    (dataset.name, model.name): STUDY.encoded(dataset.name, model.name)
    for dataset in STUDY.config.datasets
    for model in STUDY.config.models
}


def latest():
    """The study with the multi-source runs that `auto` has picked by now."""
    LATEST["study"] = LATEST["study"].with_selection()
    return LATEST["study"]


def stage_of(wildcards):
    return latest().stage(wildcards.digest)


def asked_often(function):
    """Write down a function's parameters, which Snakemake else works out several times a job."""
    overwrite_function_params(function, inspect.signature(function).parameters)
    return function


# A function like ours for every resource of every job, constants too.
asked_often(Resource.evaluate)


# --- inputs of rules ---


# Everything is named after its content, so what is there is right, whatever its time of change,
# and needs nothing any more: a cache that was deleted is made again for new trainings only, and
# those that are finished stay so. (`ancient()` is not enough: Snakemake runs a job again when an
# ancient input of it is *missing* and made again.)
def unless_there(file, *needed):
    """What a file is made from; nothing if it is there."""
    return [] if Path(file).exists() else [*needed]


def tiny_model_files(name):
    """What of a built-in tiny model has to be there; nothing for other checkpoints."""
    tiny = STUDY.model(name).checkpoint == "tiny"
    return [f"{STUDY.tiny_model(name)}/config.json"] if tiny else []


def is_tiny_world(wildcards):
    """Whether a cache is the one that tiny models are pre-trained on."""
    folder = f"{wildcards.dataset}-{wildcards.revision}-{wildcards.sample}"
    return Path(STUDY.tiny_instances(wildcards.dataset)).name == folder


def dialogues(wildcards):
    """The generated tiny world; nothing for a release, which `tasktransfer` finds and checks."""
    made = f"{RESULTS}/data/instances/{wildcards.dataset}-{wildcards.revision}-{wildcards.sample}"
    generated = STUDY.config.data.generated or is_tiny_world(wildcards)
    return unless_there(
        f"{made}/manifest.json", *([STUDY.tiny_world] if generated else [])
    )


def tiny_model_inputs(wildcards):
    made = f"{RESULTS}/models/{wildcards.model}-{wildcards.digest}/config.json"
    return unless_there(
        made, *(f"{folder}/manifest.json" for folder in STUDY.tiny_texts)
    )


def encode_inputs(wildcards):
    folder = ENCODED[wildcards.dataset, wildcards.model]
    instances = f"{STUDY.instances(wildcards.dataset)}/manifest.json"
    return unless_there(
        f"{folder}/manifest.json", instances, *tiny_model_files(wildcards.model)
    )


def refuse_triggers():
    """Refuse to run with triggers that would start finished trainings over.

    What is there needs no inputs, so the set of inputs says nothing; nor does the text of a shell
    command. Asked when the DAG is built: Snakemake knows its settings only then.
    """
    harmful = {RerunTrigger.INPUT, RerunTrigger.CODE, RerunTrigger.SOFTWARE_ENV}
    if harmful & set(workflow.rerun_triggers):
        raise WorkflowError(
            "finished trainings would be started over: use the profile in profiles/default, "
            "or --rerun-triggers mtime params"
        )


def damaged(record, problem):
    """A list of the damaged records, newer than any of them: as an input it makes Snakemake train
    their stages again, and say so in a dry run. The trainer sets the records aside."""
    if record not in DAMAGED:
        DAMAGED[record] = (Path(record).lstat().st_mtime, problem)
        file = Path(RESULTS, "logs", "damaged.log")
        file.parent.mkdir(parents=True, exist_ok=True)
        # With the time: a file of the same content would not be taken for a new one.
        lines = [f"{time.ctime()}", *(each for _, each in DAMAGED.values())]
        file.write_text("".join(f"{line}\n" for line in lines))
        # The clock of the machine that wrote a record may have been ahead of ours.
        newest = max(time.time(), *(1 + changed for changed, _ in DAMAGED.values()))
        os.utime(file, (newest, newest))
        print(f"damaged, trained once more: {problem}", file=sys.stderr)
    return f"{RESULTS}/logs/damaged.log"


@asked_often
def train_inputs(wildcards):
    """Token ids, and what the stage starts from."""
    study, stage = latest(), stage_of(wildcards)
    try:
        if is_finished(study, stage):
            refuse_triggers()
            return []
        problem = damage_of(study, stage)
    except TaskTransferError as error:
        raise WorkflowError(str(error)) from None
    inputs = [f"{ENCODED[stage.dataset, stage.model.name]}/manifest.json"]
    if stage.parent is not None:
        inputs.append(study.checkpoint(stage.parent))
    else:
        inputs += tiny_model_files(stage.model.name)
    return (
        inputs if problem is None else [*inputs, damaged(study.record(stage), problem)]
    )


def instances_everywhere():
    return [STUDY.instances(dataset.name) for dataset in STUDY.config.datasets]


def encoded_everywhere(wildcards):
    return [f"{folder}/manifest.json" for folder in ENCODED.values()]


def picked():
    """With `auto`, wait until the multi-source sources are picked."""
    if latest().selection_pending:
        checkpoints.select_sources.get()
    return latest()


def records(wildcards):
    """The records of all trainings; with `auto` the multi-source ones come when they are known."""
    return picked().records()


def collected(wildcards):
    """What tables are made from. Where they were collected with holes (``figures_now``), the list of
    these is newer than they are, and they are collected again."""
    holes = Path(STUDY.holes)
    return [*records(wildcards), *([str(holes)] if holes.exists() else [])]


def single_source_records(wildcards):
    return STUDY.records(STUDY.single_source_plan)


def submission_records(wildcards):
    """The records of one dataset and model: every run that may be submitted."""
    if STUDY.config.rules != "challenge":
        raise WorkflowError(
            f"{STUDY.config_file}: a free study has no submission: set rules: challenge"
        )
    wanted = (wildcards.dataset, wildcards.model)
    found = [s for s in picked().plan.stages if (s.dataset, s.model.name) == wanted]
    return [latest().record(stage) for stage in found]


def collect_garbage():
    """From now on, and of what is new."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(50_000, 20, 50)


def start_without_limit():
    """On one machine, start as many jobs a second as there are free cores.

    Snakemake's limit of 100 a second is kept by timers, one more for every job that has finished,
    each of which looks through all waiting jobs every second: after 1,500 jobs that takes most of a
    core. Asked when everything is set up and nothing runs yet; a limit that was given stays.
    """
    limit = workflow.scheduling_settings.max_jobs_per_timespan
    if workflow.local_exec and limit and (limit.max_jobs, limit.timespan) == (100, 1):
        workflow.scheduler.job_rate_limiter = None


# --- params and outputs of rules ---


# These take `input`, which tells Snakemake not to compare them: a stage's identity is in its path
# already, and where things are or what the study is called starts no training over.
@asked_often
def train_options(wildcards, input, output):
    study, stage = latest(), stage_of(wildcards)
    words = ["--stage", canonical_json(stage.to_json())]
    words += ["--encoded", ENCODED[stage.dataset, stage.model.name]]
    words += ["--start", study.start(stage)]
    revision = study.start_revision(stage)
    words += ["--revision", revision] if revision else []
    words += ["--save-checkpoint"] if "checkpoint" in output.keys() else []
    return f"{OPENED_BY} {shlex.join([*words, '--out', study.folder(stage)])}"


# Which executor there is, Snakemake knows only later; a number of jobs (--jobs) only a batch system
# has, and its jobs are workflows of their own that are told what was asked for.
ON_ONE_MACHINE = workflow.is_main_process and workflow.nodes is None

# Jobs of a batch system get the GPU that they ask for, whatever the machine has that submits them.
ESTIMATES = Estimates(STUDY, None if ON_ONE_MACHINE else "cuda")


@asked_often
def minutes(wildcards, attempt):
    """What a training asks a batch system for, twice as much with every attempt."""
    return ESTIMATES.runtime_minutes(stage_of(wildcards), attempt)


@asked_often
def megabytes(wildcards, attempt):
    return ESTIMATES.memory_mb(stage_of(wildcards), attempt)


@asked_often
def count_attempts(wildcards, attempt):
    """Which attempt at a job this is: the trainer tries bad input once only."""
    return attempt


def asked_of_batch_system():
    """Minutes and memory, as resources of a rule. On one machine nobody reads them, unless memory
    is shared out with `--resources mem_mb=...`, and they would take a fifth of the start; the
    folder for temporary files is the same for all jobs there, and need not be looked up for each.
    """
    if ON_ONE_MACHINE and "mem_mb" not in workflow.global_resources.keys():
        return {"tmpdir": tempfile.gettempdir()}
    return {"runtime": minutes, "mem_mb": megabytes}


def study_options(wildcards, input):
    return OPENED_BY


def stage_folder(kind):
    """The path of a kind of stage, with wildcards."""
    return f"{RESULTS}/stages/{kind}/{{name}}/seed{{seed}}-{{digest}}"


def checkpoint_of(kind):
    """The checkpoint as an output: kept, or removed once no stage needs it, or not made."""
    if not STUDY.makes_checkpoint(kind):
        return {}
    folder = directory(update(f"{stage_folder(kind)}/checkpoint"))
    return {"checkpoint": folder if STUDY.keeps(kind) else temp(folder)}


# --- analysis ---


def data_tables():
    """What is known of the dialogues themselves, for the figures and tables that show it.

    Asked for where it is there, can be counted, or dialogues have to be prepared for trainings
    anyway. Where every record is there and the dialogues are not, figures come from records alone.
    """
    prepared = all(
        Path(folder, "manifest.json").exists() for folder in instances_everywhere()
    )
    if prepared or all(Path(file).exists() for file in DATA_TABLE_FILES):
        return DATA_TABLE_FILES
    finished = all(is_whole(STUDY, stage) for stage in STUDY.plan.stages)
    return [] if finished else DATA_TABLE_FILES


def figures_of(dataset):
    """The figures that a dataset of this study always has, by name."""
    counts = {len(run.sources) for run in STUDY.plan.runs if run.dataset == dataset}
    return [
        *(SINGLE_SOURCE_FIGURES if 1 in counts else ()),
        *(["lengths"] if DATA_TABLES else []),
        *(["multi_source"] if any(count > 1 for count in counts) else []),
    ]


def captioned(file, category, caption, **labels):
    """An output that `snakemake --report` shows."""
    return report(
        file,
        caption=f"../report/{caption}.rst",
        category=category,
        labels=labels,
    )
