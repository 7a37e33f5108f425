"""The jobs that are no training: deriving data, fitting, evaluating.

Each holds its node's folder, ends at once where the node is whole, and writes its record last. What
only a design has (recipes, learners) is handed in.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tasktransfer import __version__, metrics
from tasktransfer.core.nodes import Data, Evaluation, Fit, Outcome, Stage
from tasktransfer.data.cache import read_instances, write_release
from tasktransfer.data.recipes import Ingredients, Judge, Rank, Recipe, recipe_named
from tasktransfer.datasets import DATASETS, get_task
from tasktransfer.datasets.dataset import Release
from tasktransfer.encoding.encoded import kept_instances
from tasktransfer.errors import ConfigError
from tasktransfer.evaluation.numbers import expected_values, measured
from tasktransfer.files import sweep
from tasktransfer.fits import (
    JOINT_LEARNERS,
    Learner,
    answers,
    fitted_on,
    learner_named,
    ranked,
)
from tasktransfer.jobs import probe_job
from tasktransfer.metrics.measures import values_of
from tasktransfer.results.damage import set_aside
from tasktransfer.results.finished import damage_of, is_whole
from tasktransfer.results.node_records import (
    ROWS,
    Row,
    node_identity,
    write_node_record,
    write_rows,
)
from tasktransfer.results.state import RECORD, claim, remember
from tasktransfer.results.study import Study
from tasktransfer.results.versions import commit, versions
from tasktransfer.tasks.card import SPLITS, Instance, Task

if TYPE_CHECKING:  # imports torch
    from tasktransfer.evaluation.outcome import Places

Measures = dict[str, dict[str, float]]
ASKED_OF_THE_MODEL = ("p_at_1", "bleu", "perplexity")
"""First measures of evaluations that need the model and not its answers alone: which of many
replies it chooses, or how probable one is (``evaluation.replies``)."""


class Brought(Protocol):
    """What the study's design brings for its jobs (``designs.design.Design``)."""

    @property
    def recipes(self) -> Mapping[str, Recipe]: ...
    @property
    def learners(self) -> Mapping[str, Learner]: ...
    @property
    def stand_ins(self) -> Callable[[Any], Mapping[str, str]]: ...


def derive(study: Study, data: Data, design: Brought) -> None:
    """Derive data by its recipe.

    Raises:
        ConfigError: there is no such recipe.
        DataError: what it reads is missing or damaged, or what it made does not fit the cards.
    """

    def work(folder: Path) -> tuple[dict[str, int], Measures, list[Row]]:
        recipe = recipe_named(data.recipe, design.recipes)
        ingredients = _ingredients(study, data, design.learners)
        derived = recipe(ingredients)
        tasks = tuple(dict.fromkeys(task for task, _ in derived))
        release = Release(
            place=str(folder),
            revision=data.digest,
            tasks=tasks,
            dialogues={},
            instances=lambda task, split: derived[task, split],
            synthetic=bool(study.synthetic(data.name)),
            source_kind=data.recipe,
        )
        few_sample = bool(data.settings.get("few_sample", False))
        write_release(folder, DATASETS[data.name], release, few_sample)
        counts = {task: len(derived[task, "train"]) for task in tasks}
        return counts, ingredients.report, []

    _job(study, data, design, work)


def fit(study: Study, node: Fit, design: Brought) -> None:
    """Fit a classifier for each task, and score it on the test split.

    Raises:
        ConfigError: there is no such learner.
        DataError: the instances are missing, or of a kind that it cannot learn.
    """

    notes: list[str] = []

    def work(folder: Path) -> tuple[dict[str, int], Measures, list[Row]]:
        if node.learner in JOINT_LEARNERS:
            fitted = probe_job.fitted(study, node, JOINT_LEARNERS[node.learner], folder, notes)
            return fitted.instances, fitted.measures, fitted.rows
        learner = learner_named(node.learner, design.learners)
        instances, scores, rows = {}, {}, []
        for name in node.tasks:
            task, cache = get_task(node.data.name, name), Path(study.cache(node.data))
            read = {split: read_instances(cache, name, split) for split in SPLITS}
            train = read["train"]
            features = _features(study, node, learner, train)
            classifier = learner.fit(task, train, features, node.settings, node.seed)
            (folder / name).mkdir(parents=True, exist_ok=True)
            classifier.save(folder / name)
            test = read["test"]
            probable = classifier.probabilities(test, _features(study, node, learner, test))
            golds, predicted = [one.target for one in test], answers(task, probable)
            names = [*(metric.key for metric in task.metrics), "score"]
            scores[name] = measured(task, names, predicted, golds, [])
            instances[name] = len(test)
            rows += _rows(task, test, predicted, expected_values(task, probable))
        return instances, scores, rows

    _job(study, node, design, work, notes)


def evaluate(study: Study, node: Evaluation, design: Brought, threads: int) -> None:
    """Measure an outcome or a fit on a split of a task.

    Raises:
        ConfigError: a measure is not of the task, or there is no such learner.
        DataError, ModelError: what it reads is missing or damaged.
    """

    def work(folder: Path) -> tuple[dict[str, int], Measures, list[Row]]:
        task = get_task(node.data.name, node.task)
        instances = read_instances(Path(study.cache(node.data)), node.task, node.split)
        if node.measures[0] in ASKED_OF_THE_MODEL:
            return _replies(study, node, instances, threads)
        kept = kept_instances(len(instances), node.settings.get("limit"))
        instances = [instances[place] for place in kept]
        if isinstance(node.of, Fit):
            learner = learner_named(node.of.learner, design.learners)
            classifier = fitted_on(learner, Path(study.folder(node.of), node.task), task)
            features = _features(study, node.of, learner, instances)
            probable = classifier.probabilities(instances, features)
            predictions, values = answers(task, probable), expected_values(task, probable)
        else:
            from tasktransfer.evaluation.cosine import cosines  # noqa: PLC0415  # torch
            from tasktransfer.evaluation.outcome import answered  # noqa: PLC0415

            if "cosine" in node.settings:
                told = cosines(node, node.of, places(study, node), instances, threads)
            else:
                told = answered(node, node.of, places(study, node), threads)
            predictions, values = told.predictions, told.values
        golds = [one.target for one in instances]
        scores = measured(task, node.measures, predictions, golds, values)
        return (
            {node.task: len(instances)},
            {node.task: scores},
            _rows(task, instances, predictions, values),
        )

    _job(study, node, design, work)


def places(study: Study, node: Evaluation) -> Places:
    """Where the inputs of an evaluation are."""
    from tasktransfer.evaluation.outcome import Places  # noqa: PLC0415  # imports torch

    encoded = {
        (data, model): Path(study.encoded(data, model))
        for data in node.read
        for model in node.model_names
    }
    return Places(encoded, study.start, study.base_model, study.beside, study.revision)


def _replies(
    study: Study, node: Evaluation, instances: Sequence[Instance], threads: int
) -> tuple[dict[str, int], Measures, list[Row]]:
    """An evaluation of replies that a model chooses or writes."""
    from tasktransfer.evaluation.replies import Asked, judged  # noqa: PLC0415  # imports torch

    assert isinstance(node.of, Outcome), "a fit has no replies"
    pools = {p: read_instances(study.cache(p.data), p.task, "train") for p in node.pools}
    cache = Path(study.config.results, "data", "embedded")
    told = judged(Asked(node, node.of, places(study, node), instances, pools, cache), threads)
    columns = zip(
        told.instances,
        told.predictions,
        told.golds,
        told.values,
        told.gold_values,
        told.scores,
        strict=True,
    )
    rows = [
        Row(node.task, one.id, one.dialogue_id, said, gold, value, wanted, score)
        for one, said, gold, value, wanted, score in columns
    ]
    wanted = {name: told.measures[name] for name in node.measures}
    return {node.task: len(rows)}, {node.task: wanted}, rows


def _job(
    study: Study,
    node: Data | Fit | Evaluation,
    design: Brought,
    work: Callable[[Path], tuple[dict[str, int], Measures, list[Row]]],
    notes: Sequence[str] = (),
) -> None:
    """Do a node's work while its folder is held, unless it is done; the record last, with the notes
    that the work has taken."""
    folder = Path(study.folder(node))
    with claim(folder, _say, label=node.label):
        problem = damage_of(study, node)
        if is_whole(study, node):
            _say(f"{folder}: made already, nothing to do")
            return
        if problem is not None:
            kept = set_aside(folder, (RECORD, ROWS))
            _say(f"{problem}; kept as {', '.join(file.name for file in kept)}, made once more")
        sweep(folder)
        remember(folder, "started", digest=node.digest)
        started, began = datetime.now(UTC), time.perf_counter()
        instances, measures, rows = work(folder)
        code, dirty = commit()
        identity, stand_ins = node_identity(node), dict(design.stand_ins(study.config))
        write_node_record(
            folder,
            {
                "schema": 2,
                "node": identity,
                "synthetic": bool(study.synthetic(identity["dataset"])),
                "instances": instances,
                "measures": measures,
                "rows": write_rows(folder, rows, node.digest) if rows else None,
                "provenance": {
                    "tasktransfer": __version__,
                    "versions": versions(),
                    "commit": code,
                    "dirty": dirty,
                    "config_digest": study.config.digest,
                    "study": study.config.study,
                    **({"stand_ins": stand_ins} if stand_ins else {}),  # type: ignore[typeddict-item]
                    "started": started.strftime("%Y-%m-%dT%H:%M:%SZ"),
                    "seconds": time.perf_counter() - began,
                    "notes": list(notes),
                },
            },
        )
        remember(folder, "finished", digest=node.digest)
    told = [
        f"{task} " + ", ".join(f"{name} {value:.4g}" for name, value in scores.items())
        for task, scores in measures.items()
    ]
    _say(f"{node.label}: {'; '.join(told)}")


def _features(study: Study, node: Fit, learner: Learner, instances: Sequence[Instance]) -> Any:
    """What a learner that reads representations is given: (instances, hidden size)."""
    if not learner.features:
        return None
    if node.on is None or node.on.stage is None:
        raise ConfigError(f"{node.label}: {node.learner} reads representations: name a stage (on)")
    from tasktransfer.models.representation import represent  # noqa: PLC0415  # imports torch

    model = node.on.stage.model
    tokenizer = Path(study.encoded(node.on.stage.data, model.name), "tokenizer")
    texts = [instance.context for instance in instances]
    pooling = node.settings.get("pooling", "mean")
    return represent(
        Path(study.start(node.on)), tokenizer, model.family, texts, model.max_length, pooling
    )


def _ingredients(study: Study, data: Data, learners: Mapping[str, Learner]) -> Ingredients:
    def used(kind: type[Any]) -> list[Any]:
        return [node for node in data.uses if isinstance(node, kind)]

    def rank(node: Fit) -> Rank:
        learner = learner_named(node.learner, learners)

        def of(task: str, instances: Sequence[Instance]) -> list[tuple[str, ...]]:
            card = get_task(node.data.name, task)
            classifier = fitted_on(learner, Path(study.folder(node), task), card)
            features = _features(study, node, learner, instances)
            return ranked(card, classifier.probabilities(instances, features))

        return of

    def judge(stage: Stage) -> Judge:
        def of(task: str, instances: Sequence[Instance]) -> list[float]:
            from tasktransfer.evaluation.judge import judged  # noqa: PLC0415  # imports torch

            encoded = Path(study.encoded(stage.data, stage.model.name))
            return judged(stage, Path(study.checkpoint(stage)), encoded, task, instances)

        return of

    caches = [Path(study.cache(node)) for node in used(Data)]
    return Ingredients(
        caches=tuple(caches or [Path(study.instances(data.name))]),
        rank=tuple(rank(node) for node in used(Fit)),
        checkpoints=tuple(Path(study.checkpoint(node)) for node in used(Stage)),
        tasks=study.tasks(data),
        settings=data.settings,
        judges=tuple(judge(node) for node in used(Stage)),
    )


def _rows(
    task: Task,
    instances: Sequence[Instance],
    predictions: Sequence[tuple[str, ...]],
    values: Sequence[float],
) -> list[Row]:
    golds = [one.target for one in instances]
    gold_values = values_of(task, golds) if task.labels else [None] * len(golds)
    scores = metrics.instance_scores(task, predictions, golds)
    columns = zip(instances, predictions, values, gold_values, scores, strict=True)
    return [
        Row(task.name, one.id, one.dialogue_id, answer, one.target, value, gold, score)
        for one, answer, value, gold, score in columns
    ]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
