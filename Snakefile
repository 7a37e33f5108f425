# The workflow is workflow/Snakefile; here it is used as it is, for the study of config.yaml.
#
#   snakemake --cores all --resources gpu=4                     the study of config.yaml
#   snakemake --configfile workflow/presets/demo.yaml --cores 2     another study
#   snakemake figures                                           tables, figures and report only


# Not `include:`, which would leave it without a default target.
module tasktransfer:
    snakefile:
        "workflow/Snakefile"
    config:
        config


use rule * from tasktransfer
