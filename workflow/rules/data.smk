# Dialogues: generated or read, checked and cached once, and tokenised once per model.

from tasktransfer.datasets import DATASETS


wildcard_constraints:
    dataset="|".join(DATASETS),
    revision="[0-9a-f]{12}",
    sample="few|full",
    cache="[^/]+",
    recipe="[A-Za-z0-9_-]+",
    label="[^/]+",
    model="[A-Za-z0-9][A-Za-z0-9._-]*",
    name="[^/]+/[^/]+/[^/]+",
    seed="[0-9]+",
    digest="[0-9a-f]{12}",
    choice="[A-Za-z0-9_-]+",


rule tiny_world:
    output:
        directory(STUDY.tiny_world),
    log:
        f"{RESULTS}/logs/tiny_world.log",
    conda:
        "../../envs/train.yaml"
    params:
        seed=STUDY.config.data.tiny_world.seed,
        dialogues=STUDY.config.data.tiny_world.dialogues,
    message:
        "generating the tiny world"
    shell:
        "tasktransfer world --seed {params.seed} --dialogues {params.dialogues} "
        "--out {output:q} 3>&2 > {log:q} 2>&1"


rule instances:
    input:
        instances_inputs,
    output:
        f"{RESULTS}/data/instances/{{dataset}}-{{revision}}-{{sample}}/manifest.json",
    log:
        f"{RESULTS}/logs/instances/{{dataset}}-{{revision}}-{{sample}}.log",
    conda:
        "../../envs/train.yaml"
    params:
        which=tiny_world_option,
        out=lambda wildcards, output: Path(output[0]).parent,
        study=study_options,
    message:
        "reading and checking {wildcards.dataset} ({wildcards.sample})"
    shell:
        "tasktransfer data prepare {params.study} --dataset {wildcards.dataset} {params.which} "
        "--out {params.out:q} 3>&2 > {log:q} 2>&1"


if DATA_TABLE_FILES:

    rule data_stats:
        input:
            instances_everywhere(),
        output:
            DATA_TABLE_FILES,
        log:
            f"{RESULTS}/logs/data_stats.log",
        conda:
            "../../envs/figures.yaml"
        params:
            out=lambda wildcards, output: Path(output[0]).parent,
            study=study_options,
            folders=" ".join(str(Path(file).parent) for file in instances_everywhere()),
        message:
            "counting samples and lengths"
        shell:
            "tasktransfer data stats {params.study} --out {params.out:q} 3>&2 > {log:q} 2>&1"


# Scores of references without a model, which the report shows next to the baselines.
if REFERENCE_FILES:

    rule reference:
        input:
            instances_everywhere(),
        output:
            REFERENCE_FILES,
        log:
            f"{RESULTS}/logs/reference.log",
        conda:
            "../../envs/train.yaml"
        params:
            study=study_options,
        message:
            "scoring references without a model"
        shell:
            "tasktransfer data reference {params.study} --out {output:q} 3>&2 > {log:q} 2>&1"


# One thread, so that the weights do not depend on the number of cores.
rule tiny_model:
    input:
        tiny_model_inputs,
    output:
        f"{RESULTS}/models/{{model}}-{{digest}}/config.json",
    log:
        f"{RESULTS}/logs/models/{{model}}-{{digest}}.log",
    conda:
        "../../envs/train.yaml"
    threads: 1
    resources:
        gpu=0,
    params:
        out=lambda wildcards, output: Path(output[0]).parent,
        study=study_options,
    message:
        "building the model {wildcards.model}"
    shell:
        "tasktransfer tiny-model {params.study} --model {wildcards.model} --threads {threads} "
        "--out {params.out:q} 3>&2 > {log:q} 2>&1"


rule encode:
    input:
        encode_inputs,
    output:
        f"{RESULTS}/data/encoded/{{cache}}/{{model}}-{{digest}}/manifest.json",
    log:
        f"{RESULTS}/logs/encoded/{{cache}}/{{model}}-{{digest}}.log",
    conda:
        "../../envs/train.yaml"
    params:
        out=lambda wildcards, output: Path(output[0]).parent,
        options=encode_options,
    message:
        "tokenising {wildcards.cache} for {wildcards.model}"
    shell:
        "tasktransfer encode {params.options} --out {params.out:q} 3>&2 > {log:q} 2>&1"
