# The study that Snakemake was called for.

import atexit
import os
from uuid import uuid4

from tasktransfer.designs import get_design
from tasktransfer.jobs import needs
from tasktransfer.designs.opening import open_study_for_call
from tasktransfer.designs.outputs import list_outputs
from tasktransfer.jobs.snakemake_call import (
    convert_errors,
    hide_restore_messages,
    get_rerun_triggers,
    read_snakemake_call,
)
from tasktransfer.results.node_folders import is_finished, save_check_cache
from tasktransfer.errors import CONSOLE
from tasktransfer.results.state import CALL as CALL_VARIABLE
from tasktransfer.training.host import WORKFLOW

# There is no `configfile:` directive: Snakemake would merge a preset into it key by key. Keys that are
# missing in the preset would then come from config.yaml instead of the defaults.
with convert_errors():
    CALL = read_snakemake_call(workflow, config)
    STUDY = open_study_for_call(CALL)
    DESIGN = get_design(STUDY.config)
    OUTPUTS = list_outputs(DESIGN, STUDY)

# All jobs inherit it, also those of a batch system, so that the trainer can distinguish a retry from a
# new call.
os.environ.setdefault(CALL_VARIABLE, uuid4().hex[:12])
# A job that cannot write its log writes the error to descriptor 3, a copy of its standard error.
os.environ.setdefault(CONSOLE, "3")
# Jobs on this machine share a host process that has imported the libraries (training/host.py).
if CALL.on_one_machine:
    os.environ.setdefault(WORKFLOW, str(os.getpid()))

hide_restore_messages()
if CALL.is_main:
    atexit.register(save_check_cache, STUDY)

RESULTS = STUDY.config.results
OPENED_BY = STUDY.format_arguments()
LATEST = {"study": STUDY}


def latest():
    """Return the study with the runs that follow from all choices made so far."""
    LATEST["study"] = LATEST["study"].with_choices()
    return LATEST["study"]


def chosen():
    """Wait until all choices are made, also those that become known when another is made."""
    awaited = set()
    while pending := {one.name for one in latest().pending_choices} - awaited:
        for name in sorted(pending):
            checkpoints.choose.get(choice=name)
        awaited |= pending
    return latest()


def node_of(wildcards):
    return latest().get_node(wildcards.digest)


def in_results(files):
    return [f"{RESULTS}/{file}" for file in files]


TABLE_FILES = in_results(OUTPUTS.tables)
STATISTICS_FILES = in_results(OUTPUTS.statistics)
DATA_TABLE_FILES = in_results(OUTPUTS.data_tables)
REFERENCE_FILES = in_results([OUTPUTS.reference] if OUTPUTS.reference else [])
FIGURE_FILES = in_results([*OUTPUTS.figures, *OUTPUTS.printed])
REPORT_FILES = in_results([OUTPUTS.report] if OUTPUTS.report else [])
