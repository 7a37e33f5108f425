"""Jobs other than training: deriving data, fitting and evaluating.

``recorded_job`` locks the node's folder and writes the record. Recipes and learners of a design are
arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasktransfer import metrics
from tasktransfer.core.nodes import Data, Evaluation, Fit, Outcome, Stage, Start
from tasktransfer.core.references import REFERENCES
from tasktransfer.data.cache import read_instances, write_release
from tasktransfer.data.recipes import Ingredients, Judge, Rank, find_recipe
from tasktransfer.data.samples import select_indices
from tasktransfer.datasets import DATASETS, get_task
from tasktransfer.datasets.dataset import Release
from tasktransfer.errors import ConfigError
from tasktransfer.evaluation.measures import compute_expected_values, compute_measures
from tasktransfer.files.progress import show_progress
from tasktransfer.fits import (
    JOINT_LEARNERS,
    Learner,
    get_learner,
    rank_labels,
    select_most_probable_labels,
)
from tasktransfer.jobs import (
    brought_job,
    inputs,
    probe_job,
    prompt_job,
    prompted_replies_job,
    reference_job,
    selector_job,
)
from tasktransfer.jobs.recorded_job import DesignParts, JobOutput, run_recorded_job
from tasktransfer.jobs.word_ranking_job import evaluate_word_ranking
from tasktransfer.metrics.measures import convert_answers_to_numbers
from tasktransfer.results.rows import Row
from tasktransfer.results.study import Study
from tasktransfer.selection.selector import MEASUREMENTS, SELECTOR, find_selector
from tasktransfer.tasks.card import SPLITS, Instance, Task

if TYPE_CHECKING:  # imports torch
    from tasktransfer.evaluation.outcome import EvaluationInputs

ASKED_OF_THE_MODEL = ("p_at_1", "bleu", "perplexity")
"""First measures of evaluations that need more than the model's answers (``evaluation.replies``).

They need the model's choice among many replies, or the probability of a reply.
"""


def derive_data(study: Study, data: Data, design: DesignParts) -> None:
    """Build derived data by its recipe.

    Raises:
        ConfigError: the recipe does not exist.
        DataError: an input is missing or damaged, or the derived data do not fit the cards.
    """

    def work(folder: Path, output: JobOutput) -> None:
        recipe = find_recipe(data.recipe, design.recipes)
        ingredients = _collect_ingredients(study, data, design.learners, output)
        derived = recipe(ingredients)
        tasks = tuple(dict.fromkeys(task for task, _ in derived))
        release = Release(
            location=str(folder),
            revision=data.digest,
            tasks=tasks,
            dialogues={},
            instances=lambda task, split: derived[task, split],
            synthetic=bool(study.is_synthetic(data.name)),
            source_kind=data.recipe,
        )
        few_sample = bool(data.settings.get("few_sample", False))
        write_release(folder, DATASETS[data.name], release, few_sample)
        for (task, split), instances in derived.items():
            output.sizes.setdefault(task, {})[split] = len(instances)
        output.report = ingredients.report

    run_recorded_job(study, data, design, work)


def fit_node(study: Study, node: Fit, design: DesignParts) -> None:
    """Fit a classifier for each task, and score it on the test split.

    Raises:
        ConfigError: the learner does not exist.
        DataError: the instances are missing, or their kind is not supported by the learner.
    """

    def work(folder: Path, output: JobOutput) -> None:
        if node.learner in JOINT_LEARNERS:
            learner_of_all = JOINT_LEARNERS[node.learner]
            fitted = probe_job.fit_tasks(study, node, learner_of_all, folder, output.notes)
            for name, measures in fitted.measures.items():
                output.add_result(name, measures, fitted.instances[name], "test")
            output.rows = fitted.rows
            return
        if node.learner in REFERENCES:
            reference_job.predict_tasks(study, node, output)
            return
        if node.learner in MEASUREMENTS:
            selector_job.write_measurements(study, node, folder, output)
            return
        if node.learner == SELECTOR:
            selector = find_selector(node.settings["selector"], design.selectors)
            selector_job.write_selector_values(study, node, selector, folder, output)
            return
        learner = get_learner(node.learner, design.learners)
        cache = inputs.get_cache(study, node.data)
        for name in show_progress(node.tasks, f"fitting {node.label}"):
            task = get_task(node.data.name, name)
            read = {split: read_instances(cache, name, split) for split in SPLITS}
            train = read["train"]
            features = _compute_features(study, node, learner, train)
            classifier = learner.fit(task, train, features, node.settings, node.seed)
            (folder / name).mkdir(parents=True, exist_ok=True)
            classifier.save(folder / name)
            test = read["test"]
            probable = classifier.predict_probabilities(
                test, _compute_features(study, node, learner, test)
            )
            golds, predicted = (
                [instance.target for instance in test],
                select_most_probable_labels(task, probable),
            )
            names = [*(metric.key for metric in task.metrics), "score"]
            measures = compute_measures(task, names, predicted, golds, [])
            output.add_result(name, measures, len(test), "test")
            output.rows += _build_prediction_rows(
                task, test, predicted, compute_expected_values(task, probable), "test"
            )

    run_recorded_job(study, node, design, work)


def evaluate_node(study: Study, node: Evaluation, design: DesignParts, threads: int) -> None:
    """Score an outcome or a fit on a split of a task, and write the results.

    Raises:
        ConfigError: the task does not have a measure, or the learner does not exist.
        DataError, ModelError: an input is missing or damaged.
        EndpointError: an endpoint does not respond.
    """

    def work(folder: Path, output: JobOutput) -> None:
        task = get_task(node.data.name, node.task)
        if node.asked is not None:
            if task.kind == "reply":
                prompted_replies_job.evaluate_prompted_replies(study, node, threads, output)
            else:
                _evaluate_prompted_model(study, node, threads, output)
            return
        instances = read_instances(inputs.get_cache(study, node.data), node.task, node.split)
        if node.brought is not None:
            brought_job.evaluate_answers(study, node, task, instances, output)
            return
        if node.ranks_by_words:
            train = read_instances(inputs.get_cache(study, node.data), node.task, "train")
            evaluate_word_ranking(node, train, instances, output)
            return
        if node.measures[0] in ASKED_OF_THE_MODEL:
            _evaluate_replies(study, node, instances, threads, output)
            return
        kept = select_indices(len(instances), node.settings.get("limit"))
        instances = [instances[index] for index in kept]
        if isinstance(node.of, Fit):
            learner = get_learner(node.of.learner, design.learners)
            fitted = node.settings.get("fitted_on", node.task)  # a task with the same labels
            classifier = inputs.load_fit_classifier(study, node.of, task, learner, fitted)
            features = _compute_features(study, node.of, learner, instances)
            probable = classifier.predict_probabilities(instances, features)
            predictions, values = (
                select_most_probable_labels(task, probable),
                compute_expected_values(task, probable),
            )
        else:
            if "cosine" in node.settings:  # modules that need torch are imported on use
                from tasktransfer.evaluation.cosine import predict_cosine_ratings  # noqa: PLC0415

                answered_rows = predict_cosine_ratings(
                    node, node.of, build_evaluation_inputs(study, node, threads), instances
                )
            else:
                from tasktransfer.evaluation.outcome import predict_split  # noqa: PLC0415

                answered_rows = predict_split(
                    node, node.of, build_evaluation_inputs(study, node, threads)
                )
            predictions, values = answered_rows.predictions, answered_rows.values
            output.set_host(answered_rows.setup, threads)
        golds = [instance.target for instance in instances]
        measures = compute_measures(task, node.measures, predictions, golds, values)
        output.add_result(node.task, measures, len(instances), node.split)
        output.rows = _build_prediction_rows(task, instances, predictions, values, node.split)

    run_recorded_job(study, node, design, work)


def _evaluate_prompted_model(
    study: Study, node: Evaluation, threads: int, output: JobOutput
) -> None:
    """Evaluate a prompted model."""
    prompts = prompt_job.prompt_instances(study, node, threads)
    golds, answers = [instance.target for instance in prompts.instances], prompts.given.predictions
    measures = compute_measures(prompts.task, node.measures, answers, golds, [])
    output.add_result(node.task, measures, len(golds), node.split)
    output.rows, output.report = prompts.build_rows(node.split), {"prompting": prompts.counts}
    output.notes += prompts.notes
    if prompts.setup is not None:
        output.set_host(prompts.setup, threads)


def build_evaluation_inputs(study: Study, node: Evaluation, threads: int = 1) -> EvaluationInputs:
    """Return the paths of an evaluation's inputs."""
    from tasktransfer.evaluation.outcome import EvaluationInputs  # noqa: PLC0415  # imports torch

    encoded = {
        (data, model): Path(study.get_encoded_folder(data, model))
        for data in node.read
        for model in node.model_names
    }

    def weights(start: Start) -> str:
        return inputs.get_checkpoint(study, start)

    hardware = inputs.get_hardware(study, threads)
    return EvaluationInputs(
        encoded,
        weights,
        study.get_checkpoint_source,
        study.get_second_encoder_source,
        study.get_hub_revision,
        hardware,
    )


def _evaluate_replies(
    study: Study, node: Evaluation, instances: Sequence[Instance], threads: int, output: JobOutput
) -> None:
    """Evaluate replies that a model retrieves or generates."""
    from tasktransfer.evaluation.replies import ReplyEvaluation, evaluate_replies  # noqa: PLC0415  # imports torch

    assert isinstance(node.of, Outcome), "a fit has no replies"
    pools = {
        p: read_instances(inputs.get_cache(study, p.data), p.task, "train") for p in node.pools
    }
    cache = Path(study.config.results, "data", "embedded")
    asked = ReplyEvaluation(
        node, node.of, build_evaluation_inputs(study, node, threads), instances, pools, cache
    )
    judged_replies, setup = evaluate_replies(asked)
    columns = zip(
        judged_replies.instances,
        judged_replies.predictions,
        judged_replies.golds,
        judged_replies.values,
        judged_replies.gold_values,
        judged_replies.scores,
        strict=True,
    )
    output.rows = [
        Row(
            *(index, node.task, instance.id, reply, gold, score, instance.dialogue_id, node.split),
            *(value, wanted),
        )
        for index, (instance, reply, gold, value, wanted, score) in enumerate(columns)
    ]
    measures = {name: judged_replies.measures[name] for name in node.measures}
    output.add_result(node.task, measures, len(output.rows), node.split)
    output.set_host(setup, threads)


def _compute_features(
    study: Study, node: Fit, learner: Learner, instances: Sequence[Instance]
) -> Any:
    """Compute representations of instances, shape (instances, hidden size).

    Return None if the learner does not read representations.
    """
    if not learner.features:
        return None
    if node.on is None or node.on.stage is None:
        raise ConfigError(
            f"{node.label}: The learner {node.learner} reads representations, but the fit "
            "specifies no model for them. Set the key `on` to a stage."
        )
    from tasktransfer.evaluation.features import compute_features  # noqa: PLC0415  # imports torch

    model = node.on.stage.model
    tokenizer = Path(study.get_encoded_folder(node.on.stage.data, model.name), "tokenizer")
    texts = [instance.context for instance in instances]
    pooling = node.settings.get("pooling", "mean")
    checkpoint = Path(inputs.get_checkpoint(study, node.on))
    return compute_features(
        checkpoint, tokenizer, model, texts, pooling, inputs.get_hardware(study)
    )


def _collect_ingredients(
    study: Study, data: Data, learners: Mapping[str, Learner], output: JobOutput
) -> Ingredients:
    def used(kind: type[Any]) -> list[Any]:
        return [node for node in data.uses if isinstance(node, kind)]

    def rank(node: Fit) -> Rank:
        learner = get_learner(node.learner, learners)

        def ranked_labels(task: str, instances: Sequence[Instance]) -> list[tuple[str, ...]]:
            card = get_task(node.data.name, task)
            classifier = inputs.load_fit_classifier(study, node, card, learner)
            features = _compute_features(study, node, learner, instances)
            return rank_labels(card, classifier.predict_probabilities(instances, features))

        return ranked_labels

    def judge(stage: Stage) -> Judge:
        def ratings(task: str, instances: Sequence[Instance]) -> list[float]:
            from tasktransfer.evaluation.instance_predictions import predict_stage_numbers  # noqa: PLC0415  # imports torch

            encoded = Path(study.get_encoded_folder(stage.data, stage.model.name))
            checkpoint, hardware = (
                Path(inputs.get_checkpoint(study, Start(stage))),
                inputs.get_hardware(study),
            )
            numbers, setup = predict_stage_numbers(
                stage, checkpoint, encoded, task, instances, hardware
            )
            output.set_host(setup, hardware.threads)
            return numbers

        return ratings

    caches = [inputs.get_cache(study, node) for node in used(Data)]
    return Ingredients(
        caches=tuple(caches or [Path(study.get_instances_folder(data.name))]),
        rank=tuple(rank(node) for node in used(Fit)),
        checkpoints=tuple(Path(study.get_checkpoint_folder(node)) for node in used(Stage)),
        tasks=study.list_tasks(data),
        settings=data.settings,
        judges=tuple(judge(node) for node in used(Stage)),
    )


def _build_prediction_rows(
    task: Task,
    instances: Sequence[Instance],
    predictions: Sequence[tuple[str, ...]],
    values: Sequence[float],
    split: str,
) -> list[Row]:
    golds = [instance.target for instance in instances]
    gold_values = convert_answers_to_numbers(task, golds) if task.labels else [None] * len(golds)
    scores = metrics.score_instances(task, predictions, golds)
    columns = zip(instances, predictions, values, gold_values, scores, strict=True)
    return [
        Row(
            *(
                index,
                task.name,
                instance.id,
                answer,
                instance.target,
                score,
                instance.dialogue_id,
                split,
            ),
            *(value, gold),
        )
        for index, (instance, answer, value, gold, score) in enumerate(columns)
    ]
