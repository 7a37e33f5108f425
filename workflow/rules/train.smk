# Training runs. There is one rule per kind of stage of the design, so that each kind can be requested,
# counted and given resources by its name.
#
# Outputs are flagged `update` so that Snakemake does not remove them before a job: a training process
# may have outlived its workflow and finished since. The trainer writes each output atomically and the
# record last, and ends at once if all outputs exist.
#
# Retries are for temporary failures, such as a lost node or a lack of memory. The trainer reports an
# error in its input once; a retry then ends at once.
#
# Runs that start from other runs have priority, so that temporary checkpoints are soon used and
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
            options=node_options,
        message:
            f"{kind} {{wildcards.name}}, seed {{wildcards.seed}}"
        shell:
            "tasktransfer train {params.options} --threads {threads} 3>&2 > {log:q} 2>&1"
