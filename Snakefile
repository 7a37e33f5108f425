# The workflow is workflow/Snakefile. This file uses it unchanged for the study in config.yaml.
#
#   snakemake --cores all --resources gpu=4                     the study in config.yaml
#   snakemake --configfile workflow/presets/demo.yaml --cores 2     another study
#   snakemake figures                                           tables, figures and report only


# Not `include:`, which would leave this workflow without a default target.
module tasktransfer:
    snakefile:
        "workflow/Snakefile"
    config:
        config


use rule * from tasktransfer
