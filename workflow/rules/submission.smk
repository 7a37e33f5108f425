# The FETA challenge: one archive of predictions per dataset and model. It is not part of `all`,
# because it needs a study with `rules: challenge` and all tasks of a dataset.

from tasktransfer.designs.challenge.records import list_submission_records

# Used as a decorator: errors are printed like Snakemake's own.
told = convert_errors()
SUBMISSION_FILES = [
    f"{RESULTS}/submissions/{dataset}-{model.name}.zip"
    for dataset in STUDY.config.dataset_names
    for model in STUDY.config.models
]


rule submit:
    input:
        lambda wildcards: told(list_submission_records)(
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
        "writing the submission for {wildcards.dataset} with {wildcards.model}"
    shell:
        "tasktransfer submit {params.study} --dataset {wildcards.dataset} "
        "--model {wildcards.model} --out {output.archive:q} 3>&2 > {log:q} 2>&1"


rule submission:
    input:
        SUBMISSION_FILES,
    localrule: True
    message:
        f"the submissions are in {RESULTS}/submissions"
