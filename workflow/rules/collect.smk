# Records to tables, tables to statistics.


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


# What the last call computed is still there (`update`): cells whose records and predictions are the
# same are taken over from it.
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
            "computing how sure the numbers are"
        shell:
            "tasktransfer statistics {params.study} 3>&2 > {log:q} 2>&1"


# A choice that further runs follow from, made from the results of others. Made once and then part of
# the plan from the start, so that later results never change it. Those that are known at the start
# are the first; others may follow from them.
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
            "making the choice {wildcards.choice} that further runs follow from"
        shell:
            "tasktransfer choose {params.study} --name {wildcards.choice} 3>&2 > {log:q} 2>&1"
