# What the jobs need (src/tasktransfer/jobs/needs.py says why), asked for by wildcards.

from snakemake.exceptions import WorkflowError

from tasktransfer.core.nodes import Stage

DAMAGED = needs.DamagedRecords(STUDY)
# Trainings wait for them, so that data which are too few are told first.
FIRST_DATA = needs.first_data(STUDY, DESIGN.recipes_first) if CALL.is_main else []


def instances_inputs(wildcards):
    return needs.instances(STUDY, wildcards.dataset, instances_folder(wildcards))


def instances_folder(wildcards):
    name = f"{wildcards.dataset}-{wildcards.revision}-{wildcards.sample}"
    return f"{RESULTS}/data/instances/{name}"


def tiny_model_inputs(wildcards):
    folder = f"{RESULTS}/models/{wildcards.model}-{wildcards.digest}"
    return needs.tiny_model(STUDY, folder)


def encode_inputs(wildcards):
    with errors_for_snakemake():
        return needs.encoding(latest(), encoded_folder(wildcards))


def encoded_folder(wildcards):
    name = f"{wildcards.cache}/{wildcards.model}-{wildcards.digest}"
    return f"{RESULTS}/data/encoded/{name}"


def node_inputs(wildcards):
    study, node = latest(), node_of(wildcards)
    with errors_for_snakemake():
        if is_finished(study, node):
            refuse_triggers()
            return []
        first = FIRST_DATA if isinstance(node, Stage) else []
        return [*needs.needed_by(study, node), *first, *DAMAGED.inputs(study, node)]


def refuse_triggers():
    """Refuse to run with triggers that would start finished trainings over.

    What is there needs no inputs, so the set of inputs says nothing; nor does the text of a shell
    command. Asked when the DAG is built: Snakemake knows its settings only then.
    """
    if rerun_triggers(workflow) & {"input", "code", "software-env"}:
        raise WorkflowError(
            "finished trainings would be started over: use the profile in profiles/default, "
            "or --rerun-triggers mtime params"
        )


def instances_everywhere():
    return [
        f"{STUDY.instances(dataset)}/manifest.json"
        for dataset in STUDY.config.dataset_names
    ]


def encoded_everywhere():
    return [f"{folder}/manifest.json" for folder in STUDY.encoded_folders]


def records(wildcards):
    """The records of all nodes; those that follow from choices come when these are made."""
    return chosen().records()


def collected(wildcards):
    """What tables are made from. Where they were collected with holes (``figures_now``), the list of
    these is newer than they are, and they are collected again."""
    holes = Path(STUDY.holes)
    return [*records(wildcards), *([str(holes)] if holes.exists() else [])]


def records_to_choose_from(wildcards):
    with errors_for_snakemake():
        choice = latest().choice(wildcards.choice)
    return [STUDY.record(node) for node in choice.after]


def choices_to_make(wildcards):
    """The files of all choices that are known and not made: side by side, where `chosen` waits for
    one after the other. Those that are made are no inputs, as records may be newer."""
    study = latest()
    return [study.choice_file(choice) for choice in study.pending_choices]
