"""An evaluation of a language model as it was released: what the job reads, and asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tasktransfer import metrics
from tasktransfer.core.nodes import Evaluation, Outcome
from tasktransfer.data.cache import read_instances
from tasktransfer.datasets import get_task
from tasktransfer.encoding.encoded import kept
from tasktransfer.errors import ConfigError, EndpointError, escape_line
from tasktransfer.evaluation.prompting.probes import answers_folder
from tasktransfer.jobs import inputs
from tasktransfer.metrics.measures import values_of
from tasktransfer.results.rows import Row
from tasktransfer.results.study import Study
from tasktransfer.tasks.asking import Prompt, chosen_from
from tasktransfer.tasks.card import Instance, Task

if TYPE_CHECKING:  # imports torch
    from tasktransfer.evaluation.prompting.ask import Asking, Given
    from tasktransfer.evaluation.prompting.model import AskedModel
    from tasktransfer.training.setup import Setup

NOTED, MOST_UNREADABLE = 0.05, 0.5
"""Fractions of unreadable answers: above the first a note says so, above the second the evaluation
ends with an error."""
SHOWN = 100
"""Characters of an answer in a message."""


@dataclass(frozen=True, slots=True)
class Told:
    """What asking came to. ``counts``: by name, for the record; ``setup``: how a model was run that
    runs here."""

    task: Task
    instances: list[Instance]
    given: Given
    counts: dict[str, float]
    notes: list[str]
    setup: Setup | None

    def rows(self, split: str) -> list[Row]:
        """A row an instance."""
        golds = [instance.target for instance in self.instances]
        answers = self.given.predictions
        scores = metrics.instance_scores(self.task, answers, golds)
        single = bool(self.task.labels)
        values = values_of(self.task, answers) if single else [None] * len(golds)
        gold_values = values_of(self.task, golds) if single else [None] * len(golds)
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


def told(study: Study, node: Evaluation, threads: int) -> Told:
    """Ask about the instances of an evaluation.

    Raises:
        DataError, ModelError: what it reads is missing or damaged.
        EndpointError: the endpoint does not answer, or most of its answers are unreadable.
    """
    assert node.asked is not None
    instances = judged_instances(study, node)
    task = get_task(node.data.name, node.task)
    how = asking(study, node, model_of(study, node, threads))
    known: Sequence[str] = ()
    if task.kind == "open_labels":
        train = read_instances(inputs.cache(study, node.data), node.task, "train")
        known = sorted({label for instance in train for label in instance.target})
    given = how.answered(instances, known)
    counts = {"questions": given.questions, "unreadable": given.unreadable, **how.model.counts()}
    setup: Setup | None = getattr(how.model, "setup", None)
    notes = [
        *how.model.notes(chooses=chosen_from(task)),
        *note_unreadable(given, node, study),
    ]
    return Told(task, instances, given, counts, notes, setup)


def note_unreadable(given: Given, node: Evaluation, study: Study) -> list[str]:
    """Return notes about answers that are not a choice or cannot be read.

    Raises:
        EndpointError: they are most of the answers, so a score would say nothing.
    """
    fraction = given.unreadable / max(1, given.questions)
    reasons = [f"{count:,}: {reason}" for reason, count in given.reasons.most_common(3)]
    if fraction <= NOTED:
        return [f"unread answers, which count as wrong: {'; '.join(reasons)}"] if reasons else []
    examples = [f'"{escape_line(text[:SHOWN])}"' for text in given.examples]
    written = [f"not a choice, for example {', '.join(examples)}"] if examples else []
    message = (
        f"{given.unreadable:,} of {given.questions:,} answers ({fraction:.1%}) are unreadable and "
        f"count as wrong: {'; '.join([*reasons, *written])}"
    )
    if fraction > MOST_UNREADABLE:
        raise EndpointError(
            f"{node.label}: {message}. The score would say nothing of the model. Ask it in another "
            "way (chat, thinking_tokens, other wordings, more shots), take another model, or leave "
            f"the task out. Answers are kept in {_answers_folder(study, node)}: remove it to ask "
            "for them again"
        )
    return [message]


def judged_instances(study: Study, node: Evaluation) -> list[Instance]:
    """The instances of the split that the evaluation asks about, as trainings with the same limit
    are tested on."""
    assert node.asked is not None
    every = read_instances(inputs.cache(study, node.data), node.task, node.split)
    return kept(every, node.asked.get("limit_test"))


def asking(study: Study, node: Evaluation, model: AskedModel) -> Asking:
    """How the evaluation asks its model."""
    from tasktransfer.evaluation.prompting import ask  # noqa: PLC0415

    assert node.asked is not None
    train: list[Instance] = []
    if node.asked["shots"]:
        train = read_instances(inputs.cache(study, node.data), node.task, "train")
    return ask.asking(get_task(node.data.name, node.task), node.asked, train, model)


def shown(study: Study, node: Evaluation, number: int) -> dict[str, Any]:
    """What is put to the model of one instance; neither are its weights read nor is an endpoint
    asked.

    Args:
        number: of the instance, among those that are asked about, from 0.

    Raises:
        ConfigError: there is no such instance.
        DataError, ModelError: data or tokenizer are not there.
    """
    instances = judged_instances(study, node)
    if not 0 <= number < len(instances):
        raise ConfigError(f"instance {number}: {node.label} asks about 0 to {len(instances) - 1}")
    instance = instances[number]
    reader = reader_of(study, node)
    asked = asking(study, node, reader).questions(instance)
    written: Callable[[Prompt], str] = getattr(reader, "text", lambda prompt: prompt.text)
    return {
        "instance": number,
        "id": instance.id,
        "right": list(instance.target),
        "prompts": [written(each.prompt) for each in asked],
        "choices": [list(each.choices) for each in asked],
    }


def reader_of(study: Study, node: Evaluation) -> AskedModel:
    """As much of the model as its prompts are made with."""
    assert node.asked is not None
    assert isinstance(node.of, Outcome) and node.of.model is not None
    model = node.of.model
    if model.served:
        return model_of(study, node, 1, sends=False)
    from tasktransfer.evaluation.prompting.load import load_texts  # noqa: PLC0415

    base, revision = study.base_model(model.name), study.revision(model.name)
    texts: Any = load_texts(model, base, revision, node.asked.get("chat", "auto"))
    return cast("AskedModel", texts)


def model_of(study: Study, node: Evaluation, threads: int, *, sends: bool = True) -> AskedModel:
    """The model that is asked, here or behind an endpoint.

    Args:
        sends: whether requests may be sent to an endpoint.
    """
    assert node.asked is not None
    assert isinstance(node.of, Outcome) and node.of.model is not None
    model, chat = node.of.model, node.asked.get("chat", "auto")
    if not model.served:
        from tasktransfer.evaluation.prompting.load import load_asked  # noqa: PLC0415

        hardware = inputs.hardware(study, threads)
        base, revision = study.base_model(model.name), study.revision(model.name)
        return load_asked(model, base, revision, hardware, chat)
    from tasktransfer.evaluation.prompting.endpoint import open_endpoint  # noqa: PLC0415

    at = study.config.endpoints.get(model.name)
    if at is None:
        raise ConfigError(f"{study.config_file}: no endpoint is named for {model.name}")
    return open_endpoint(
        at,
        model,
        _answers_folder(study, node),
        chat,
        thinking_tokens=node.asked.get("thinking_tokens"),
        sends=sends,
    )


def _answers_folder(study: Study, node: Evaluation) -> Path:
    assert isinstance(node.of, Outcome) and node.of.model is not None
    return answers_folder(study.config.results, node.of.model.name, node.of.model.weights)
