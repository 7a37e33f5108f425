# Trainings. One text for all; a rule for each of the design's kinds of stages, so that each can be
# asked for, counted and given resources by its name.
#
# Outputs are flagged `update` so that Snakemake does not remove them before a job: a training may
# have outlived the workflow that started it and have finished since. The trainer writes each of
# them whole and the record last, and ends at once where all of them are there.
#
# Retries are for what may pass: a lost node, memory that others held. The trainer tells an error of
# the input once; asked again it ends at once.
#
# What starts from others comes first, so that a checkpoint that is only kept for it is soon used and
# removed.
for kind in DESIGN.kinds:

    rule:
        name:
            kind
        input:
            node_inputs,
        output:
            **stage_outputs(kind),
        log:
            f"{stage_folder(kind)}/train.log",
        priority: int(STUDY.starts_from_others(kind))
        retries: 2
        conda:
            "../../envs/train.yaml"
        threads: 1
        resources:
            **asked_of_batch_system(),
            gpu=1,
        params:
            options=train_options,
        message:
            f"{kind} {{wildcards.name}}, seed {{wildcards.seed}}"
        shell:
            "tasktransfer train {params.options} --threads {threads} 3>&2 > {log:q} 2>&1"
