# The study that Snakemake was called for.

import atexit

from tasktransfer.designs.transfer import outputs
from tasktransfer.operate import needs
from tasktransfer.operate.opening import open_called
from tasktransfer.operate.snakemake_call import (
    errors_for_snakemake,
    quiet_restoring,
    rerun_triggers,
    snakemake_call,
)
from tasktransfer.results.finished import is_finished, keep_checks

# There is no `configfile:` directive: Snakemake would lay a preset over it key by key, and keys that
# the preset leaves out would come from config.yaml instead of from the defaults.
with errors_for_snakemake():
    CALL = snakemake_call(workflow, config)
    STUDY = open_called(CALL)

quiet_restoring()
if CALL.is_main:
    atexit.register(keep_checks, STUDY)

RESULTS = STUDY.config.results
OPENED_BY = STUDY.arguments()
ENCODED = needs.encoded_folders(STUDY)
LATEST = {"study": STUDY}


def latest():
    """The study with the multi-source runs that `auto` has picked by now."""
    LATEST["study"] = LATEST["study"].with_selection()
    return LATEST["study"]


def picked():
    """With `auto`, wait until the multi-source sources are picked."""
    if latest().selection_pending:
        checkpoints.select_sources.get()
    return latest()


def stage_of(wildcards):
    return latest().stage(wildcards.digest)
