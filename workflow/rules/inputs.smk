# Inputs of the jobs, as functions of wildcards (see src/tasktransfer/jobs/needs.py).

from snakemake.exceptions import WorkflowError

from tasktransfer.config.places import expand_path
from tasktransfer.core.nodes import Stage

DAMAGED = needs.DamagedRecords(STUDY)
# Training waits for these data, so that an error about too few data comes first.
FIRST_DATA = needs.list_first_data(STUDY, DESIGN.recipes_first) if CALL.is_main else []


def instances_inputs(wildcards):
    return needs.list_instance_inputs(
        STUDY, wildcards.dataset, instances_folder(wildcards)
    )


def instances_folder(wildcards):
    name = f"{wildcards.dataset}-{wildcards.revision}-{wildcards.sample}"
    return f"{RESULTS}/data/instances/{name}"


def tiny_model_inputs(wildcards):
    folder = f"{RESULTS}/models/{wildcards.model}-{wildcards.digest}"
    return needs.list_tiny_model_inputs(STUDY, folder)


def encode_inputs(wildcards):
    with convert_errors():
        return needs.list_encoding_inputs(latest(), encoded_folder(wildcards))


def encoded_folder(wildcards):
    name = f"{wildcards.cache}/{wildcards.model}-{wildcards.digest}"
    return f"{RESULTS}/data/encoded/{name}"


def node_inputs(wildcards):
    study, node = latest(), node_of(wildcards)
    with convert_errors():
        if is_finished(study, node):
            refuse_triggers()
            return []
        first = FIRST_DATA if isinstance(node, Stage) else []
        return [
            *needs.list_job_inputs(study, node),
            *first,
            *DAMAGED.list_inputs(study, node),
        ]


def refuse_triggers():
    """Raise an error for rerun triggers that would repeat finished runs.

    Finished nodes have no inputs, so a changed set of inputs means nothing, and neither does the text
    of a shell command. This is checked when the DAG is built, because Snakemake knows its settings
    only then.
    """
    if get_rerun_triggers(workflow) & {"input", "code", "software-env"}:
        raise WorkflowError(
            "--rerun-triggers: finished training runs would be repeated; use the profile in "
            "profiles/default, or --rerun-triggers mtime params"
        )


def instances_everywhere():
    return [
        f"{STUDY.get_instances_folder(dataset)}/manifest.json"
        for dataset in STUDY.config.dataset_names
    ]


def encoded_everywhere():
    return [f"{folder}/manifest.json" for folder in STUDY.encoded_folders]


def records(wildcards):
    """Return the records of all nodes, with those of choices as soon as these are made."""
    return chosen().list_record_paths()


def collected(wildcards):
    """Return the inputs of the tables.

    If they were built with missing runs (``figures_now``), the list of missing runs is newer than the
    tables, and they are built again. Files that the config names for tables and figures are read
    again if they change.
    """
    read = [
        STUDY.missing_results_log,
        *map(expand_path, STUDY.config.analysis_files.values()),
    ]
    return [*records(wildcards), *(file for file in read if Path(file).exists())]


def records_to_choose_from(wildcards):
    with convert_errors():
        choice = latest().get_choice(wildcards.choice)
    return [STUDY.get_record_path(node) for node in choice.after]


def choices_to_make(wildcards):
    """Return the files of all pending choices, which can be made in parallel.

    (`chosen` waits for them one by one.) Choices that are made are not inputs, because records may be
    newer.
    """
    study = latest()
    return [study.get_choice_path(choice) for choice in study.pending_choices]
