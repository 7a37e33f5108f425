"""Every key of a config file, declared once.

The checks, the defaults and the JSON schema are all made from ``STUDY``. To add a key, add it
here, to the dataclass of its section in ``types`` and, with a comment, to ``config.yaml``.
"""

from __future__ import annotations

from tasktransfer.config.declare import (
    ABSENT,
    Choice,
    Either,
    Flag,
    Key,
    ListOf,
    Nothing,
    Real,
    Section,
    Text,
    Whole,
)
from tasktransfer.config.types import TINY_WORLD
from tasktransfer.core.specs import FAMILIES
from tasktransfer.datasets import DATASETS
from tasktransfer.designs.transfer.algorithms import ALGORITHMS, STAGE_KINDS, TRANSFER_ALGORITHMS
from tasktransfer.designs.transfer.challenge.rules import RULES

PAPER_EPOCHS = {"DailyDialog": 30, "Friends": 20}
MAX_SEED = 2**32 - 1
ALL = "all"
FOLDER = Text(r"[^{}*?\"'$`\\\n]*[^{}*?\"'$`\\\s]", "write a folder without quotes, * ? $ \\ { }")
MODEL_NAME = Text(
    r"[A-Za-z0-9][A-Za-z0-9._-]*",
    "a model's name is part of paths: use letters, digits, '.', '_' and '-', starting with a "
    "letter or digit",
)


def _task_hints(dataset: str) -> dict[str, str]:
    """Likely slips → remedy: a short name, or a task of another dataset."""
    hints = {
        name: f"it is a task of {other}, and a study never mixes datasets: name it under {other}"
        for other in DATASETS
        for name in DATASETS[other].tasks
        if other != dataset
    }
    own = {t.short.casefold(): f"write {t.name!r}" for t in DATASETS[dataset].cards}
    return hints | own


def _task(dataset: str) -> Choice:
    return Choice(tuple(DATASETS[dataset].tasks), f"task of {dataset}", _task_hints(dataset))


def _all_or(item: Choice, minimum: int = 1) -> Either:
    slips = {name: f"a list is due: write [{name}]" for name in item.names}
    return Either((Choice((ALL,), "value", slips), ListOf(item, minimum)))


def _dataset_section(dataset: str) -> Section:
    task = _task(dataset)
    pair = Section(
        (
            Key("source", task, "the task that is learned first or along"),
            Key("target", task, "the task that is scored"),
        )
    )
    return Section(
        (
            Key("tasks", _all_or(task), "tasks of the study, or all", ALL),
            Key("sources", _all_or(task), "tasks that are transferred from, or all of tasks", ALL),
            Key("targets", _all_or(task), "tasks that are transferred to, or all of tasks", ALL),
            Key("pairs", Either((Nothing(), ListOf(pair))), "instead of sources x targets", None),
        )
    )


DATASET = Choice(tuple(DATASETS), "dataset")
ALGORITHM = Choice(tuple(ALGORITHMS), "algorithm")
TASK_OF_ANY = Choice(
    tuple(name for each in DATASETS.values() for name in each.tasks),
    "task",
    {t.short.casefold(): f"write {t.name!r}" for each in DATASETS.values() for t in each.cards},
)
LIMIT = Either((Nothing(), Whole(1)))

MODEL = Section(
    (
        Key("name", MODEL_NAME, "what tables, figures and paths call the model"),
        Key("family", Choice(FAMILIES, "family"), "encoder, decoder or encoder_decoder"),
        Key(
            "checkpoint",
            Text(remedy="write 'tiny', a folder or a hub name"),
            "'tiny' (built in), a local folder (./path) or a name on the Hugging Face hub",
        ),
        Key(
            "revision",
            Either((Nothing(), Text(r"[\w./-]+", "write a branch, tag or commit"))),
            "branch, tag or commit of a hub name; null means main",
            None,
        ),
        Key("max_length", Whole(16, 1_000_000), "longest input in tokens", 512),
        Key(
            "max_unknown_words",
            Real(0, 1, inclusive=True),
            "the largest share of the study's words that its tokenizer may not know",
            0.05,
        ),
    )
)

MULTI_SOURCE = Section(
    (
        Key(
            "mode",
            Choice(("off", "named", "auto"), "mode", false_as="off"),
            "off, named (below), or auto: picked from the single-source results",
            "off",
        ),
        Key(
            "named",
            ListOf(
                Section(
                    (
                        Key("dataset", DATASET, "the dataset of target and sources"),
                        Key("target", TASK_OF_ANY, "the task that is scored"),
                        Key("sources", ListOf(TASK_OF_ANY), "the tasks trained on together"),
                    )
                ),
                minimum=0,
            ),
            "multi-source targets with their sources; read when mode is named",
            [],
        ),
        Key("targets_per_dataset", Whole(1), "auto: how many targets that benefit most", 2),
        Key("sources_per_target", Whole(1), "auto: how many of a target's best sources", 3),
        Key(
            "algorithms",
            _all_or(Choice(TRANSFER_ALGORITHMS, "transfer algorithm")),
            "transfer algorithms run with several sources, or all of the study's",
            ALL,
        ),
    )
)

TRAINING = Section(
    (
        Key("learning_rate", Real(0, 1), "Adam's constant learning rate", 3e-5),
        Key("batch_size", Whole(1), "instances per step", 60),
        Key(
            "epochs",
            Either(
                (
                    Whole(1),
                    Section(
                        tuple(Key(d, Whole(1), f"epochs on {d}", ABSENT) for d in DATASETS),
                        "dataset",
                        minimum=1,
                    ),
                )
            ),
            "passes over the training set; one number, or one per dataset",
            PAPER_EPOCHS,
        ),
        Key("max_grad_norm", Real(0), "gradients are clipped to this norm", 1.0),
        Key(
            "precision",
            Choice(("auto", "float32", "bfloat16"), "precision"),
            "auto: bfloat16 where GPU or CPU has units for it and the model is wide, else float32",
            "auto",
        ),
        Key(
            "task_weighting",
            Choice(("none", "inverse_sqrt"), "task weighting"),
            "how a task's loss is weighted when several are trained together",
            "inverse_sqrt",
        ),
        Key(
            "loss_on",
            Choice(("answer", "sequence"), "loss"),
            "decoders: loss on the answer only, or on prompt and answer",
            "answer",
        ),
        Key(
            "fidelity",
            Choice(("default", "tlidb"), "fidelity"),
            "tlidb scores invalid generated answers as the paper's toolkit does",
            "default",
        ),
        Key(
            "dropout",
            Either((Nothing(), Real(0, 0.9, inclusive=True))),
            "replaces every dropout rate of the model; null keeps the checkpoint's own",
            None,
        ),
        Key("limit_train", LIMIT, "training instances per task at most; null means all", None),
        Key("limit_dev", LIMIT, "dev instances per task at most; null means all", None),
        Key("limit_test", LIMIT, "test instances per task at most; null means all", None),
    )
)

STUDY = Section(
    (
        Key("study", Text(), "the study's name, shown in titles and records"),
        Key("results", FOLDER, "folder of all results", "results"),
        Key(
            "rules",
            Choice(RULES, "rules"),
            "challenge refuses what the FETA challenge forbids; free does not, and its records "
            "cannot be submitted",
            "free",
        ),
        Key(
            "data",
            Section(
                (
                    Key(
                        "release",
                        FOLDER,
                        "tiny_world, or the folder that holds TLiDB_<Set>/ or TLiDB_<Set>.zip",
                        TINY_WORLD,
                    ),
                    Key("few_sample", Flag(), "the benchmark's 10 % of train and dev", True),
                    Key(
                        "tiny_world",
                        Section(
                            (
                                Key("seed", Whole(0, MAX_SEED), "seed of the generator", 0),
                                Key("dialogues", Whole(120, 100_000), "dialogues per dataset", 240),
                            )
                        ),
                        "how the built-in tiny world is generated",
                        {},
                    ),
                )
            ),
            "which dialogues are studied",
            {},
        ),
        Key(
            "datasets",
            Section(
                tuple(Key(d, _dataset_section(d), f"tasks of {d}", ABSENT) for d in DATASETS),
                "dataset",
                minimum=1,
            ),
            "the datasets, each with its tasks and pairs",
        ),
        Key("models", ListOf(MODEL), "the models, each a checkpoint with its family"),
        Key("algorithms", _all_or(ALGORITHM), "the algorithms; baseline is always run", ALL),
        Key(
            "seeds",
            Either((Whole(1, 1000), ListOf(Whole(0, MAX_SEED), maximum=1000))),
            "a list of seeds, or n for 0 to n-1",
            1,
        ),
        Key("multi_source", MULTI_SOURCE, "runs with several sources (paper, section 6.2)", {}),
        Key("training", TRAINING, "hyperparameters (paper, Appendix B)", {}),
        Key(
            "checkpoints",
            Section(
                (
                    Key(
                        "keep",
                        _all_or(Choice(STAGE_KINDS, "kind of stage"), minimum=0),
                        "kinds of stages whose checkpoints stay on disk, or all",
                        ["baseline", "pretrain"],
                    ),
                )
            ),
            "what stays on disk beside records and predictions",
            {},
        ),
    )
)
