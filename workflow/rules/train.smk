# Trainings. One shell command for all; four rules, so that each kind of stage can be asked for,
# counted and given resources by its name.
#
# Outputs are flagged `update` so that Snakemake does not remove them before a job: a training may
# have outlived the workflow that started it and have finished since. The trainer writes each of
# them whole and the record last, and ends at once where all of them are there.
#
# Retries are for what may pass: a lost node, memory that others held. The trainer tells an error of
# the input once; asked again it ends at once.


# A task alone: the baseline of a target, and what a single source's transfers start from.
rule baseline:
    input:
        train_inputs,
    output:
        **checkpoint_of("baseline"),
        record=update(f"{stage_folder('baseline')}/metrics.json"),
        predictions=update(f"{stage_folder('baseline')}/predictions.parquet"),
    log:
        f"{stage_folder('baseline')}/train.log",
    retries: 2
    conda:
        "../../envs/train.yaml"
    threads: 1
    resources:
        **asked_of_batch_system(),
        gpu=1,
        attempt=count_attempts,
    params:
        options=train_options,
    message:
        "baseline {wildcards.name}, seed {wildcards.seed}"
    shell:
        "tasktransfer train {params.options} --threads {threads} "
        "--attempt {resources.attempt} > {log:q} 2>&1"


# Several sources together, before the target is known: nothing is scored.
rule pretrain:
    input:
        train_inputs,
    output:
        **checkpoint_of("pretrain"),
        record=update(f"{stage_folder('pretrain')}/metrics.json"),
    log:
        f"{stage_folder('pretrain')}/train.log",
    retries: 2
    conda:
        "../../envs/train.yaml"
    threads: 1
    resources:
        **asked_of_batch_system(),
        gpu=1,
        attempt=count_attempts,
    params:
        options=train_options,
    message:
        "pretrain {wildcards.name}, seed {wildcards.seed}"
    shell:
        "tasktransfer train {params.options} --threads {threads} "
        "--attempt {resources.attempt} > {log:q} 2>&1"


# Sources and target together, the best epoch chosen on the target.
rule multitask:
    input:
        train_inputs,
    output:
        **checkpoint_of("multitask"),
        record=update(f"{stage_folder('multitask')}/metrics.json"),
        predictions=update(f"{stage_folder('multitask')}/predictions.parquet"),
    log:
        f"{stage_folder('multitask')}/train.log",
    retries: 2
    conda:
        "../../envs/train.yaml"
    threads: 1
    resources:
        **asked_of_batch_system(),
        gpu=1,
        attempt=count_attempts,
    params:
        options=train_options,
    message:
        "multitask {wildcards.name}, seed {wildcards.seed}"
    shell:
        "tasktransfer train {params.options} --threads {threads} "
        "--attempt {resources.attempt} > {log:q} 2>&1"


# The target alone, from where a source or a multitask training ended. Before all others, so that a
# checkpoint that is only kept for this is soon used and removed.
rule finetune:
    input:
        train_inputs,
    output:
        **checkpoint_of("finetune"),
        record=update(f"{stage_folder('finetune')}/metrics.json"),
        predictions=update(f"{stage_folder('finetune')}/predictions.parquet"),
    log:
        f"{stage_folder('finetune')}/train.log",
    priority: 1
    retries: 2
    conda:
        "../../envs/train.yaml"
    threads: 1
    resources:
        **asked_of_batch_system(),
        gpu=1,
        attempt=count_attempts,
    params:
        options=train_options,
    message:
        "finetune {wildcards.name}, seed {wildcards.seed}"
    shell:
        "tasktransfer train {params.options} --threads {threads} "
        "--attempt {resources.attempt} > {log:q} 2>&1"
