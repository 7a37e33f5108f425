# Records to tables.

TABLE_FILES = [
    f"{STUDY.tables}/{name}.parquet"
    for name in ("runs", "scores", "deltas", "sizes", "missing", "problems")
]


rule collect:
    input:
        records,
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
