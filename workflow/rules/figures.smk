# Figures, printed tables and the report from tables and statistics.


# Figures with unchanged data are not drawn again, so they are not removed first (`update`).
rule draw:
    input:
        TABLE_FILES,
        STATISTICS_FILES,
        DATA_TABLE_FILES,
    output:
        [update(captioned(file)) for file in in_results(OUTPUTS.figures)],
        [captioned(file) for file in in_results(OUTPUTS.printed)],
    log:
        f"{RESULTS}/logs/draw.log",
    conda:
        "../../envs/figures.yaml"
    params:
        study=study_options,
    message:
        f"drawing {STUDY.figures}"
    shell:
        "tasktransfer figures {params.study} 3>&2 > {log:q} 2>&1"


if REPORT_FILES:

    rule report:
        input:
            TABLE_FILES,
            STATISTICS_FILES,
            FIGURE_FILES,
            REFERENCE_FILES,
        output:
            [captioned(file) for file in REPORT_FILES],
        log:
            f"{RESULTS}/logs/report.log",
        conda:
            "../../envs/figures.yaml"
        params:
            study=study_options,
        message:
            f"writing {STUDY.report}"
        shell:
            "tasktransfer report {params.study} 3>&2 > {log:q} 2>&1"


# Tables, statistics, figures and report of the available results, with missing runs marked: while
# jobs run, or after failures. It has no outputs, so that it always runs and depends on nothing.
rule figures_now:
    log:
        f"{RESULTS}/logs/figures_now.log",
    conda:
        "../../envs/figures.yaml"
    params:
        study=STUDY.format_arguments(),
    message:
        f"drawing the available results into {STUDY.figures}"
    shell:
        "(tasktransfer collect {params.study} && tasktransfer statistics {params.study} "
        "&& tasktransfer figures {params.study} && tasktransfer report {params.study}) "
        "3>&2 > {log:q} 2>&1"
