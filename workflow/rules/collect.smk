# Records to tables, tables to statistics.

TABLE_FILES = files(STUDY.tables, outputs.TABLES, ["parquet"])
STATISTICS_FILES = files(STUDY.tables, outputs.STATISTICS, ["parquet"])

# What figures and statistics read of the dialogues.
DATA_TABLES = (
    DATA_TABLE_FILES if needs.counts_dialogues(STUDY, DATA_TABLE_FILES) else []
)


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
        f"collecting the records into {STUDY.tables}"
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
