# Trainings: one rule text for all kinds of stages. Each kind is a rule of its own, so that it can be
# asked for, counted and given resources by its name.
#
# Outputs are flagged `update` so that Snakemake does not remove them before a job: a training may
# have outlived the workflow that started it and have finished since. The trainer writes each of
# them whole and the record last, and ends at once where all of them are there.
#
# Retries are for what may pass: a lost node, memory that others held. The trainer tells an error of
# the input once; asked again it ends at once.

for kind in STAGE_KINDS:

    rule:
        name:
            kind
        input:
            train_inputs,
        output:
            **stage_outputs(kind),
        log:
            f"{stage_folder(kind)}/train.log",
        # Before all others, so that a checkpoint that is only kept for a finetune is soon used and
        # removed.
        priority: int(kind == "finetune")
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
            f"{kind} {{wildcards.name}}, seed {{wildcards.seed}}"
        shell:
            "tasktransfer train {params.options} --threads {threads} "
            "--attempt {resources.attempt} > {log:q} 2>&1"
