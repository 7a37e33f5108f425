# Tables from records, and statistics from tables.


rule collect:
    input:
        collected,
        choices_to_make,
    output:
        TABLE_FILES,
    log:
        f"{RESULTS}/logs/collect.log",
    conda:
        "../../envs/figures.yaml"
    params:
        study=study_options,
        runs=collected_for,
    message:
        f"collecting the records into {STUDY.tables}"
    shell:
        "tasktransfer collect {params.study} --complete 3>&2 > {log:q} 2>&1"


# The results of the last call are kept (`update`), and reused for cells with unchanged records and
# predictions.
if STATISTICS_FILES:

    rule statistics:
        input:
            TABLE_FILES,
            DATA_TABLE_FILES,
        output:
            update(STATISTICS_FILES),
        log:
            f"{RESULTS}/logs/statistics.log",
        conda:
            "../../envs/figures.yaml"
        params:
            study=study_options,
        message:
            "computing confidence intervals and tests"
        shell:
            "tasktransfer statistics {params.study} 3>&2 > {log:q} 2>&1"


# A choice that adds runs, made from the results of other runs. It is made once and then part of the
# plan, so that later results never change it. Choices that are known at the start come first; others
# may follow from them.
if STUDY.plan.choices:

    checkpoint choose:
        input:
            records_to_choose_from,
        output:
            f"{RESULTS}/tables/{{choice}}.json",
        log:
            f"{RESULTS}/logs/choose-{{choice}}.log",
        conda:
            "../../envs/figures.yaml"
        params:
            study=study_options,
        message:
            "making the choice {wildcards.choice}, which adds runs"
        shell:
            "tasktransfer choose {params.study} --name {wildcards.choice} 3>&2 > {log:q} 2>&1"
