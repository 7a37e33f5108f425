# Records to tables, tables to statistics.

TABLE_FILES = [
    f"{STUDY.tables}/{name}.parquet"
    for name in ("runs", "scores", "deltas", "sizes", "missing", "problems")
]

STATISTICS_FILES = [
    f"{STUDY.tables}/{name}.parquet"
    for name in (
        "cells",
        "summary",
        "variance",
        "asymmetry",
        "agreement",
        "overlap",
        "overlap_effect",
    )
]
DATA_TABLES = data_tables()


rule collect:
    input:
        collected,
    output:
        TABLE_FILES,
    log:
        f"{RESULTS}/logs/collect.log",
    conda:
        "../../envs/figures.yaml"
    params:
        study=study_options,
        runs=lambda wildcards: digest_of(latest().plan_file(latest().plan)),
    message:
        "collecting the records into {STUDY.tables}"
    shell:
        "tasktransfer collect {params.study} --complete > {log:q} 2>&1"


# What the last call computed is still there (`update`): cells whose records and predictions are the
# same are taken over from it.
rule statistics:
    input:
        TABLE_FILES,
        DATA_TABLES,
    output:
        update(STATISTICS_FILES),
    log:
        f"{RESULTS}/logs/statistics.log",
    conda:
        "../../envs/figures.yaml"
    params:
        study=study_options,
    message:
        "computing how sure the numbers are"
    shell:
        "tasktransfer statistics {params.study} > {log:q} 2>&1"


# With multi_source.mode auto: which targets and sources, from the single-source results. Made
# once and then part of the plan from the start, so that later results never change the choice.
checkpoint select_sources:
    input:
        single_source_records,
    output:
        STUDY.selection_file,
    log:
        f"{RESULTS}/logs/select_sources.log",
    conda:
        "../../envs/figures.yaml"
    params:
        study=study_options,
    message:
        "picking multi-source targets and sources"
    shell:
        "tasktransfer select-sources {params.study} > {log:q} 2>&1"
