# Jobs other than training: deriving data by a recipe, fits by a library, and evaluations. Each writes
# a record next to its results, and ends at once if that exists (`update`, see train.smk). Jobs that run
# a model count against the devices and lease one each, as training does.


rule derive:
    input:
        node_inputs,
    output:
        update(f"{RESULTS}/data/derived/{{recipe}}/{{dataset}}-{{digest}}/metrics.json"),
    log:
        f"{RESULTS}/data/derived/{{recipe}}/{{dataset}}-{{digest}}/job.log",
    conda:
        "../../envs/train.yaml"
    resources:
        gpu=devices,
    params:
        options=node_options,
    message:
        "deriving {wildcards.recipe} from {wildcards.dataset}"
    shell:
        "tasktransfer derive {params.options} 3>&2 > {log:q} 2>&1"


rule fit:
    input:
        node_inputs,
    output:
        update(f"{RESULTS}/fits/{{name}}/seed{{seed}}-{{digest}}/metrics.json"),
    log:
        f"{RESULTS}/fits/{{name}}/seed{{seed}}-{{digest}}/job.log",
    conda:
        "../../envs/train.yaml"
    resources:
        gpu=devices,
    params:
        options=node_options,
    message:
        "fitting {wildcards.name}, seed {wildcards.seed}"
    shell:
        "tasktransfer fit {params.options} 3>&2 > {log:q} 2>&1"


rule evaluate:
    input:
        node_inputs,
    output:
        update(f"{RESULTS}/evaluations/{{dataset}}/{{label}}/{{digest}}/metrics.json"),
    log:
        f"{RESULTS}/evaluations/{{dataset}}/{{label}}/{{digest}}/job.log",
    conda:
        "../../envs/train.yaml"
    resources:
        gpu=devices,
    params:
        options=node_options,
    message:
        "evaluating {wildcards.label}"
    shell:
        "tasktransfer evaluate {params.options} --threads {threads} 3>&2 > {log:q} 2>&1"
