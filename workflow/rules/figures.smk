# Tables and statistics to figures, printed tables and the report.

PRINTED_FILES = files(STUDY.figures, outputs.PRINTED, outputs.PRINTED_ENDINGS)
DRAWINGS = [
    (name, dataset.name)
    for dataset in STUDY.config.datasets
    for name in figures_of(dataset.name)
]
FIGURE_FILES = files(
    STUDY.figures,
    [f"{name}_{dataset}" for name, dataset in DRAWINGS],
    outputs.FIGURE_ENDINGS,
)


# Figures whose data are the same are not drawn again, and so are not removed first (`update`).
rule draw:
    input:
        TABLE_FILES,
        STATISTICS_FILES,
        DATA_TABLES,
    output:
        [
            update(
                captioned(
                    f"{STUDY.figures}/{name}_{dataset}.png",
                    "Figures",
                    name,
                    figure=name.replace("_", " "),
                    dataset=dataset,
                )
            )
            for name, dataset in DRAWINGS
        ],
        [update(f"{STUDY.figures}/{name}_{dataset}.pdf") for name, dataset in DRAWINGS],
        [
            captioned(f"{STUDY.figures}/{name}.csv", "Tables", name, table=title)
            for name, title in outputs.PRINTED.items()
        ],
        [file for file in PRINTED_FILES if not file.endswith(".csv")],
    log:
        f"{RESULTS}/logs/draw.log",
    conda:
        "../../envs/figures.yaml"
    params:
        study=study_options,
    message:
        f"drawing {STUDY.figures}"
    shell:
        "tasktransfer figures {params.study} > {log:q} 2>&1"


rule report:
    input:
        TABLE_FILES,
        STATISTICS_FILES,
        FIGURE_FILES,
        PRINTED_FILES,
    output:
        captioned(STUDY.report, "Report", "report", page="everything in one page"),
    log:
        f"{RESULTS}/logs/report.log",
    conda:
        "../../envs/figures.yaml"
    params:
        study=study_options,
    message:
        f"writing {STUDY.report}"
    shell:
        "tasktransfer report {params.study} > {log:q} 2>&1"


# Tables, statistics, figures and report of what is there, holes shown: while trainings run, or
# after some failed. It has no output, so that it runs whenever it is asked for and depends on
# nothing.
rule figures_now:
    log:
        f"{RESULTS}/logs/figures_now.log",
    conda:
        "../../envs/figures.yaml"
    params:
        study=STUDY.arguments(),
    message:
        f"drawing what is there into {STUDY.figures}"
    shell:
        "(tasktransfer collect {params.study} && tasktransfer statistics {params.study} "
        "&& tasktransfer figures {params.study} && tasktransfer report {params.study}) "
        "> {log:q} 2>&1"
