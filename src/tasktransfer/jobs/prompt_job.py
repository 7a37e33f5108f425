"""The job that evaluates a prompted language model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tasktransfer import metrics
from tasktransfer.core.nodes import Evaluation, Outcome
from tasktransfer.data.cache import read_instances
from tasktransfer.data.samples import select_instances
from tasktransfer.datasets import get_task
from tasktransfer.errors import ConfigError, EndpointError, escape_line
from tasktransfer.evaluation.prompting.probe_store import get_answers_folder
from tasktransfer.jobs import inputs
from tasktransfer.metrics.measures import convert_answers_to_numbers
from tasktransfer.metrics.retrieval import select_block_rows
from tasktransfer.results.rows import Row
from tasktransfer.results.study import Study
from tasktransfer.tasks.asking import Prompt, format_turns, has_choices
from tasktransfer.tasks.card import Instance, Task

if TYPE_CHECKING:  # imports torch
    from tasktransfer.evaluation.prompting.model import PromptedModel
    from tasktransfer.evaluation.prompting.prompter import PromptedPredictions, TaskPrompter
    from tasktransfer.training.setup import Setup

NOTE_FRACTION, MAX_UNREADABLE_FRACTION = 0.05, 0.5
"""Fractions of unreadable answers above which the evaluation prints a note, or ends with an error.
"""
MAX_SHOWN_CHARACTERS = 100
"""Maximum number of characters of an answer in a message."""


@dataclass(frozen=True, slots=True)
class PromptedResults:
    """The results of prompting a model.

    Attributes:
        task: card of the task.
        instances: instances that were evaluated.
        given: predictions, log-likelihoods and ranks.
        counts: named counts for the record.
        notes: notes for the user.
        setup: device setup of a local model, None for an endpoint.
    """

    task: Task
    instances: list[Instance]
    given: PromptedPredictions
    counts: dict[str, float]
    notes: list[str]
    setup: Setup | None

    def build_rows(self, split: str) -> list[Row]:
        """Return one row of results per instance."""
        golds = [instance.target for instance in self.instances]
        answers = self.given.predictions
        scores = metrics.score_instances(self.task, answers, golds)
        single = bool(self.task.labels)
        values = convert_answers_to_numbers(self.task, answers) if single else [None] * len(golds)
        gold_values = (
            convert_answers_to_numbers(self.task, golds) if single else [None] * len(golds)
        )
        return [
            Row(
                *(
                    index,
                    self.task.name,
                    instance.id,
                    answers[index],
                    instance.target,
                    scores[index],
                ),
                *(instance.dialogue_id, split, values[index], gold_values[index]),
                log_likelihood=self.given.likelihoods[index],
                rank=self.given.ranks[index],
            )
            for index, instance in enumerate(self.instances)
        ]


def prompt_instances(study: Study, node: Evaluation, threads: int) -> PromptedResults:
    """Prompt the model with every instance of an evaluation.

    Raises:
        DataError, ModelError: an input is missing or damaged.
        EndpointError: the endpoint does not respond, or most of its answers are unreadable.
    """
    assert node.asked is not None
    instances = read_evaluated_instances(study, node)
    task = get_task(node.data.name, node.task)
    prompting = create_task_prompter(study, node, load_prompted_model(study, node, threads))
    known: Sequence[str] = ()
    if task.kind == "open_labels":
        train = read_instances(inputs.get_cache(study, node.data), node.task, "train")
        known = sorted({label for instance in train for label in instance.target})
    given = prompting.prompt_model(instances, known)
    counts = {
        "questions": given.questions,
        "unreadable": given.unreadable,
        **prompting.model.get_counts(),
    }
    setup: Setup | None = getattr(prompting.model, "setup", None)
    notes = [
        *prompting.model.list_notes(chooses=has_choices(task)),
        *describe_unreadable_answers(given, node, study),
    ]
    return PromptedResults(task, instances, given, counts, notes, setup)


def describe_unreadable_answers(
    given: PromptedPredictions, node: Evaluation, study: Study
) -> list[str]:
    """Return notes on answers that cannot be parsed or are not among the choices.

    Raises:
        EndpointError: most answers are unreadable, so a score would be meaningless.
    """
    fraction = given.unreadable / max(1, given.questions)
    counted_as = "the middle of the scale" if node.asked and node.asked.get("rating") else "wrong"
    reasons = [f"{count:,}: {reason}" for reason, count in given.reasons.most_common(3)]
    if fraction <= NOTE_FRACTION:
        return (
            [f"Unreadable answers count as {counted_as}: {'; '.join(reasons)}"] if reasons else []
        )
    examples = [f'"{escape_line(text[:MAX_SHOWN_CHARACTERS])}"' for text in given.examples]
    written = [f"not a choice, for example {', '.join(examples)}"] if examples else []
    message = (
        f"{given.unreadable:,} of {given.questions:,} answers ({fraction:.1%}) are unreadable and "
        f"count as {counted_as}: {'; '.join([*reasons, *written])}"
    )
    if fraction > MAX_UNREADABLE_FRACTION:
        raise EndpointError(
            f"{node.label}: {message}. A score of so few readable answers would not measure the "
            "model. Change the prompt (chat, thinking_tokens, other wordings, more shots), use "
            "another model, or remove the task. Answers are cached in "
            f"{_locate_answers_folder(study, node)}. Remove this folder to request the answers "
            "again."
        )
    return [message]


def read_evaluated_instances(study: Study, node: Evaluation) -> list[Instance]:
    """Read the evaluated instances, which are those of training runs with an equal limit.

    If the setting ``turn_separator`` is set, contexts have one line per utterance.
    """
    assert node.asked is not None
    every = read_instances(inputs.get_cache(study, node.data), node.task, node.split)
    if "block" in node.settings:
        most, drop_last = node.settings.get("blocks"), "drop_last_block" in node.settings
        rows = select_block_rows(len(every), node.settings["block"], most=most, drop_last=drop_last)
        selected = [every[row] for row in rows]
    else:
        selected = select_instances(every, node.asked.get("limit_test"))
    separator = node.asked.get("turn_separator")
    if separator is None:
        return selected
    return [replace(each, context=format_turns(each.context, separator)) for each in selected]


def create_task_prompter(study: Study, node: Evaluation, model: PromptedModel) -> TaskPrompter:
    """Create the prompter of a task and model for an evaluation."""
    from tasktransfer.evaluation.prompting import prompter  # noqa: PLC0415

    assert node.asked is not None
    train: list[Instance] = []
    if node.asked["shots"]:
        train = read_instances(inputs.get_cache(study, node.data), node.task, "train")
    return prompter.build_prompter(get_task(node.data.name, node.task), node.asked, train, model)


@dataclass(frozen=True, slots=True)
class RenderedPrompts:
    """Prompts of one instance, as the model reads them.

    Attributes:
        instance: index of the instance in the evaluation, from 0.
        id: id of the instance.
        gold: its reference answers.
        choices: choices of each prompt; empty if the answer is generated.
    """

    instance: int
    id: str
    gold: tuple[str, ...]
    prompts: tuple[str, ...]
    choices: tuple[tuple[str, ...], ...]


def render_prompts(study: Study, node: Evaluation, number: int) -> RenderedPrompts:
    """Render an instance's prompts, without loading the model or calling an endpoint.

    Args:
        number: index of the instance in the evaluation, from 0.

    Raises:
        ConfigError: the instance does not exist.
        DataError, ModelError: data or tokenizer are missing.
    """
    instances = read_evaluated_instances(study, node)
    if not 0 <= number < len(instances):
        raise ConfigError(
            f"instance {number}: The evaluation {node.label} has no such instance. Choose a number "
            f"from 0 to {len(instances) - 1}."
        )
    instance = instances[number]
    reader = load_prompt_reader(study, node)
    questions = create_task_prompter(study, node, reader).build_prompts(instance)
    render: Callable[[Prompt], str] = getattr(reader, "render_prompt", lambda prompt: prompt.text)
    return RenderedPrompts(
        number,
        instance.id,
        tuple(instance.target),
        tuple(render(question.prompt) for question in questions),
        tuple(tuple(question.choices) for question in questions),
    )


def load_prompt_reader(study: Study, node: Evaluation) -> PromptedModel:
    """Load a model's tokenizer or endpoint client, which suffices to render prompts."""
    assert node.asked is not None
    assert isinstance(node.of, Outcome) and node.of.model is not None
    model = node.of.model
    if model.served:
        return load_prompted_model(study, node, 1, sends=False)
    from tasktransfer.evaluation.prompting.load import load_prompt_tokenizer  # noqa: PLC0415

    base, revision = study.get_checkpoint_source(model.name), study.get_hub_revision(model.name)
    texts: Any = load_prompt_tokenizer(model, base, revision, node.asked.get("chat", "auto"))
    return cast("PromptedModel", texts)


def load_prompted_model(
    study: Study, node: Evaluation, threads: int, *, sends: bool = True
) -> PromptedModel:
    """Load a prompted model on this machine, or connect to the endpoint that serves it.

    Args:
        sends: allow requests to an endpoint.
    """
    assert node.asked is not None
    assert isinstance(node.of, Outcome) and node.of.model is not None
    model, chat = node.of.model, node.asked.get("chat", "auto")
    if not model.served:
        from tasktransfer.evaluation.prompting.load import load_prompted_model  # noqa: PLC0415

        hardware = inputs.get_hardware(study, threads)
        base, revision = study.get_checkpoint_source(model.name), study.get_hub_revision(model.name)
        return load_prompted_model(model, base, revision, hardware, chat)
    from tasktransfer.evaluation.prompting.endpoint import build_endpoint_model  # noqa: PLC0415

    at = study.config.endpoints.get(model.name)
    if at is None:
        raise ConfigError(
            f"{study.config_file}: The model {model.name} has no endpoint. Add the key `endpoint`."
        )
    return build_endpoint_model(
        at,
        model,
        _locate_answers_folder(study, node),
        chat,
        thinking_tokens=node.asked.get("thinking_tokens"),
        sends=sends,
    )


def _locate_answers_folder(study: Study, node: Evaluation) -> Path:
    assert isinstance(node.of, Outcome) and node.of.model is not None
    return get_answers_folder(study.config.results, node.of.model.name, node.of.model.weights)
