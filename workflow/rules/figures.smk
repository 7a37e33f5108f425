# Tables to figures.

FIGURE_FILES = [
    *(
        f"{STUDY.figures}/heatmap_{dataset.name}.{ending}"
        for dataset in STUDY.config.datasets
        for ending in ("png", "pdf")
    ),
    *(f"{STUDY.figures}/table2.{ending}" for ending in ("csv", "md", "tex")),
]


rule draw:
    input:
        TABLE_FILES,
    output:
        FIGURE_FILES,
    log:
        f"{RESULTS}/logs/draw.log",
    conda:
        "../../envs/figures.yaml"
    params:
        study=study_options,
    message:
        "drawing {STUDY.figures}"
    shell:
        "tasktransfer figures {params.study} > {log:q} 2>&1"


# Tables and figures of what is there, holes shown: while trainings run, or after some failed.
# It has no output, so that it runs whenever it is asked for and depends on nothing.
rule figures_now:
    log:
        f"{RESULTS}/logs/figures_now.log",
    conda:
        "../../envs/figures.yaml"
    params:
        study=STUDY.arguments(),
    message:
        "drawing what is there into {STUDY.figures}"
    shell:
        "(tasktransfer collect {params.study} && tasktransfer figures {params.study}) "
        "> {log:q} 2>&1"
