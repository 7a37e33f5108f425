# The FETA challenge: an archive of predictions per dataset and model. Not part of `all`: only a
# study under `rules: challenge` that covers every task of a dataset has them.

from tasktransfer.designs.transfer.commands import submission_records

# As a decorator: what is wrong is told as Snakemake tells its own errors.
told = errors_for_snakemake()
SUBMISSION_FILES = [
    f"{RESULTS}/submissions/{dataset}-{model.name}.zip"
    for dataset in STUDY.config.dataset_names
    for model in STUDY.config.models
]


rule submit:
    input:
        lambda wildcards: told(submission_records)(
            chosen(), wildcards.dataset, wildcards.model
        ),
    output:
        archive=f"{RESULTS}/submissions/{{dataset}}-{{model}}.zip",
        choice=f"{RESULTS}/submissions/{{dataset}}-{{model}}.zip.json",
    log:
        f"{RESULTS}/logs/submissions/{{dataset}}-{{model}}.log",
    conda:
        "../../envs/figures.yaml"
    params:
        study=study_options,
    message:
        "choosing what to submit for {wildcards.dataset} with {wildcards.model}"
    shell:
        "tasktransfer submit {params.study} --dataset {wildcards.dataset} "
        "--model {wildcards.model} --out {output.archive:q} 3>&2 > {log:q} 2>&1"


rule submission:
    input:
        SUBMISSION_FILES,
    localrule: True
    message:
        f"the submissions are in {RESULTS}/submissions"
