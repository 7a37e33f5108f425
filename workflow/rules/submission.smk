# The FETA challenge: an archive of predictions per dataset and model. Not part of `all`: only a
# study under `rules: challenge` that covers every task of a dataset has them.

from tasktransfer.designs.transfer.commands import submission_records as records_of

SUBMISSION_FILES = [
    f"{RESULTS}/submissions/{dataset}-{model.name}.zip"
    for dataset in STUDY.config.dataset_names
    for model in STUDY.config.models
]


def submission_records(wildcards):
    with errors_for_snakemake():
        return records_of(chosen(), wildcards.dataset, wildcards.model)


rule submit:
    input:
        submission_records,
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
        "--model {wildcards.model} --out {output.archive:q} > {log:q} 2>&1"


rule submission:
    input:
        SUBMISSION_FILES,
    localrule: True
    message:
        f"the submissions are in {RESULTS}/submissions"
