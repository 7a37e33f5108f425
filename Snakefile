# The study that a config file describes, as a workflow. What it trains is decided by the plan
# (src/tasktransfer/plan.py); this file and workflow/rules only say how it is made.
#
#   snakemake --cores all --resources gpu=4                     the study of config.yaml
#   snakemake --configfile workflow/presets/demo.yaml --cores 2     another study
#   snakemake figures                                           tables, figures and report only

from snakemake.utils import min_version

min_version("9.0")


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/collect.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/submission.smk"


onstart:
    collect_garbage()
    start_without_limit()


localrules:
    all,
    trainings,
    tables,
    figures,
    data,


# Every record is listed, not the tables alone: a record that was deleted is then made again.
rule all:
    default_target: True
    input:
        records,
        TABLE_FILES,
        STATISTICS_FILES,
        FIGURE_FILES,
        PRINTED_FILES,
        STUDY.report,
        DATA_TABLE_FILES,
    message:
        "the study is complete: open {STUDY.report}"


# Every training, and nothing of the analysis.
rule trainings:
    input:
        records,
    message:
        "every training is done"


# The Parquet tables of all records, their statistics, and the sizes of the data.
rule tables:
    input:
        TABLE_FILES,
        STATISTICS_FILES,
        DATA_TABLE_FILES,
    message:
        "the tables are in {STUDY.tables}"


# Figures, printed tables and the report; see figures_now for what can be drawn before all trainings
# are done.
rule figures:
    input:
        TABLE_FILES,
        STATISTICS_FILES,
        FIGURE_FILES,
        PRINTED_FILES,
        STUDY.report,
    message:
        "figures and tables are in {STUDY.figures}, all of them in {STUDY.report}"


# Dialogues prepared and tokenised, and the tiny models built: all that needs no training.
rule data:
    input:
        encoded_everywhere,
        DATA_TABLE_FILES,
    message:
        "data and models are ready"
