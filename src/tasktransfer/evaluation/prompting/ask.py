"""Evaluation of a prompted language model: render prompts, read answers, collect predictions."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tasktransfer.errors import ModelError
from tasktransfer.evaluation.prompting.model import AskedModel, Likelihood, Unread
from tasktransfer.files.progress import show_progress
from tasktransfer.tasks.asking import (
    Asked,
    Prompt,
    build_questions,
    format_answer,
    get_wordings,
    has_choices,
    list_choice_answers,
    read_choice,
    read_written,
)
from tasktransfer.tasks.card import Instance, Task, Wording
from tasktransfer.tasks.ratings import get_scale

EXPECTED = "expected"
"""Setting ``rating`` of an evaluation: the expected value instead of the likeliest choice."""
TOGETHER = 256
"""Number of instances per group of prompts."""
AROUND = 16
"""Tokens that a chat template may add around an example."""
EXAMPLES = 3
"""Number of answers outside the choices that are kept for messages."""
WRITTEN_BEYOND = 8
"""Tokens that a generated choice may have beyond the longest one: quotes, a full stop."""


@dataclass
class Given:
    """Predictions of a prompted model, one per instance, in the order of the instances.

    Attributes:
        predictions: predicted labels or generated text.
        likelihoods: log-probability of the gold choice in nats; None if choices were not scored.
        ranks: rank of the gold choice by length-normalised likelihood; None likewise.
        unreadable: number of answers that are not a choice or cannot be read; they count as wrong.
        questions: number of prompts.
        reasons: reasons why answers cannot be read, with their counts.
        examples: examples of answers that are not a choice.
    """

    predictions: list[tuple[str, ...]] = field(default_factory=list)
    likelihoods: list[float | None] = field(default_factory=list)
    ranks: list[int | None] = field(default_factory=list)
    unreadable: int = 0
    questions: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)


def sample_examples(
    task: Task, train: Sequence[Instance], shots: int, seed: int
) -> tuple[Instance, ...]:
    """Sample the few-shot examples by seed; return all training instances if there are fewer."""
    draw = random.Random(f"{seed} {task.name}")
    return tuple(draw.sample(list(train), min(shots, len(train))))


@dataclass(frozen=True)
class Asking:
    """A model that is prompted for a task with one prompt template and few-shot examples."""

    task: Task
    wording: Wording
    examples: tuple[Instance, ...]
    model: AskedModel
    expects: bool = False
    """True if the answer of a rating task is the expected value of its choices' probabilities."""

    @property
    def scores_choices(self) -> bool:
        """True if choices are scored by likelihood instead of generated."""
        return has_choices(self.task) and self.model.gives_likelihoods

    def build_questions(self, instance: Instance) -> list[Asked]:
        """Return an instance's prompts, with its context truncated to the maximum length.

        Raises:
            ModelError: the prompt is too long even without the context.
        """
        whole = self._questions(instance)
        most = self.model.max_length - self._answer_tokens(whole)
        lengths = [self.model.count_tokens(question.prompt) for question in whole]
        if max(lengths) <= most:
            return whole
        bare = self._questions(replace(instance, context=""))
        least = max(self.model.count_tokens(question.prompt) for question in bare)
        if least >= most:
            raise ModelError(
                f"instance {instance.id} of {self.task.name}: The instruction, "
                f"{len(self.examples)} examples and the question alone take {least} tokens of "
                f"max_length {self.model.max_length}, of which {self.model.max_length - most} "
                "are reserved for the answer. Raise the model's max_length, or use fewer "
                "shots."
            )
        context = self.model.cut(instance.context, most - least, self.task.keeps)
        return self._questions(replace(instance, context=context))

    def _questions(self, instance: Instance) -> list[Asked]:
        listed = has_choices(self.task) and not self.model.gives_likelihoods
        return build_questions(self.task, self.wording, instance, self.examples, listed=listed)

    def _answer_tokens(self, asked: Sequence[Asked]) -> int:
        """Return the number of tokens reserved for the answer."""
        if not has_choices(self.task):
            return self.task.prompt.max_answer_tokens
        longest = max((text for question in asked for text in question.choices), key=len)
        return self.model.count_tokens(Prompt((longest,))) + WRITTEN_BEYOND

    # --- answers ---

    def prompt_model(self, instances: Sequence[Instance], known: Sequence[str] = ()) -> Given:
        """Prompt the model for instances and read its answers.

        Args:
            known: labels that an ``open_labels`` task may have.
        """
        given = Given()
        groups = range(0, len(instances), TOGETHER)
        for begin in show_progress(groups, f"prompting, groups of {TOGETHER}"):
            some = instances[begin : begin + TOGETHER]
            asked = [self.build_questions(item) for item in some]
            flat = [item for each in asked for item in each]
            given.questions += len(flat)
            replies: Iterator[Any]
            if self.scores_choices:
                replies = iter(self.model.compute_likelihoods(flat))
                for instance, each in zip(some, asked, strict=True):
                    self._chosen(given, instance, [next(replies) for _ in each])
            else:
                most = self._answer_tokens(flat)
                replies = iter(self.model.write([o.prompt for o in flat], most, self.wording.stops))
                for each in asked:
                    self._written(given, each, [next(replies) for _ in each], known)
        return given

    def _chosen(
        self, given: Given, instance: Instance, answers: Sequence[list[Likelihood] | Unread]
    ) -> None:
        names = list_choice_answers(self.task)
        unread = [each.reason for each in answers if isinstance(each, Unread)]
        if unread:
            given.unreadable += len(unread)
            given.reasons.update(unread)
            given.likelihoods.append(None)
            given.ranks.append(None)
            read = ["" if isinstance(each, Unread) else names[_order(each)[0]] for each in answers]
            read = [self._middle] if self.expects else read
            given.predictions.append(() if self.task.kind == "multi_label" else tuple(read))
            return
        likelihoods = [each for each in answers if not isinstance(each, Unread)]
        if self.expects:
            rating = compute_expected_rating(self.task, likelihoods[0])
            given.likelihoods.append(None)
            given.ranks.append(None)
            given.predictions.append((f"{rating:.12g}",))
            return
        given.predictions.append(tuple(names[_order(scored)[0]] for scored in likelihoods))
        right = names.index(instance.target[0]) if instance.target[0] in names else None
        single = len(likelihoods) == 1 and self.task.kind != "multi_label" and right is not None
        given.likelihoods.append(
            likelihoods[0][right].total if single and right is not None else None
        )
        ranked = _order(likelihoods[0]).index(right) + 1 if single and right is not None else None
        given.ranks.append(ranked)

    def _written(
        self,
        given: Given,
        asked: Sequence[Asked],
        answers: Sequence[str | Unread],
        known: Sequence[str],
    ) -> None:
        given.likelihoods.append(None)
        given.ranks.append(None)
        unread = [each.reason for each in answers if isinstance(each, Unread)]
        given.reasons.update(unread)
        texts = ["" if isinstance(each, Unread) else each for each in answers]
        if not has_choices(self.task):
            given.unreadable += len(unread)
            given.predictions.append(read_written(self.task, texts[0], known))
            return
        read = [
            read_choice(self.task, question.choices, text)
            for question, text in zip(asked, texts, strict=True)
        ]
        given.unreadable += read.count(None)
        strange = [text for name, text in zip(read, texts, strict=True) if name is None and text]
        given.examples = [*dict.fromkeys([*given.examples, *strange])][:EXAMPLES]
        if self.task.kind == "multi_label":
            given.predictions.append(tuple(name for name in read if name is not None))
            return
        if self.expects:
            given.predictions.append((self._middle if read[0] is None else read[0],))
            return
        # A text that is not a choice is not an answer of the task, and counts as wrong.
        kept = (text if name is None else name for name, text in zip(read, texts, strict=True))
        given.predictions.append(tuple(kept))

    @property
    def _middle(self) -> str:
        """The middle of the scale, for an answer that is not a rating."""
        return f"{sum(get_scale(self.task)) / 2:g}"


def compute_expected_rating(task: Task, choices: Sequence[Likelihood]) -> float:
    """Return the expected rating under the choices' probabilities, which are normalised to 1.

    Args:
        task: card of a rating task.
        choices: likelihood of each number of the scale.
    """
    most = max(choice.total for choice in choices)
    shares = [math.exp(choice.total - most) for choice in choices]
    ratings = map(float, list_choice_answers(task))
    products = (share * rating for share, rating in zip(shares, ratings, strict=True))
    return sum(products) / sum(shares)


def _order(choices: Sequence[Likelihood]) -> list[int]:
    """Return the choices' indices by decreasing likelihood; ties keep the order of the choices."""
    return sorted(range(len(choices)), key=lambda index: -choices[index].mean)


def build_asking(
    task: Task, said: Mapping[str, Any], train: Sequence[Instance], model: AskedModel
) -> Asking:
    """Build the prompts of an evaluation from its settings (``asked``).

    Args:
        train: training instances of the task, from which examples are sampled; may be empty for
            zero shots.
    """
    wording = get_wordings(task)[said["wording"]]
    bare = Asking(task, wording, (), model, said.get("rating") == EXPECTED)
    examples = sample_examples(task, train, said["shots"], said.get("seed", 0))
    share = model.max_length // (len(examples) + 1)
    return replace(
        bare, examples=tuple(_truncate_example(bare, example, share) for example in examples)
    )


def _truncate_example(asking: Asking, example: Instance, share: int) -> Instance:
    """Return an example whose context is truncated so that it fits into ``share`` tokens."""
    task, model = asking.task, asking.model
    bare = build_questions(task, asking.wording, replace(example, context=""))
    own = max(
        model.count_tokens(Prompt((question.prompt.turns[0],)))
        + model.count_tokens(
            Prompt((format_answer(task, asking.wording, example, question.output),))
        )
        for question in bare
    )
    room = max(0, share - own - AROUND)
    return replace(example, context=model.cut(example.context, room, task.keeps))
