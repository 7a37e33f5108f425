"""Evaluation of a prompted language model: its prompts, and the predictions from its answers."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tasktransfer.errors import ModelError
from tasktransfer.evaluation.prompting.model import Likelihood, PromptedModel, Unread
from tasktransfer.files.progress import show_progress
from tasktransfer.tasks.asking import (
    InstancePrompt,
    Prompt,
    build_prompts,
    format_answer,
    get_wordings,
    has_choices,
    list_choice_answers,
    parse_choice,
    parse_generated_answer,
)
from tasktransfer.tasks.card import Instance, Task, Wording, get_scale

EXPECTED = "expected"
"""Value of the setting ``rating``: predict the expected rating instead of the likeliest choice."""
GROUP_SIZE = 256
"""Number of instances per group of prompts."""
CHAT_TEMPLATE_TOKENS = 16
"""Number of tokens that are reserved for the chat template around an example."""
MAX_SHOWN_ANSWERS = 3
"""Maximum number of answers outside the choices that are stored for messages."""
EXTRA_ANSWER_TOKENS = 8
"""Number of tokens, such as quotes, that a generated answer may have beyond the longest choice."""


@dataclass
class PromptedPredictions:
    """Predictions of a prompted model, one per instance, in the order of the instances.

    Attributes:
        predictions: predicted labels or generated text.
        likelihoods: log-probability of the gold choice in nats. None if choices are not scored.
        ranks: rank of the gold choice by length-normalised likelihood. None if choices are not
            scored.
        unreadable: number of answers that are not a choice or cannot be read. They count as wrong.
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
    """Sample ``shots`` training instances as few-shot examples, or all if there are fewer."""
    generator = random.Random(f"{seed} {task.name}")
    return tuple(generator.sample(list(train), min(shots, len(train))))


@dataclass(frozen=True)
class TaskPrompter:
    """A model that is prompted for a task with one prompt template and few-shot examples."""

    task: Task
    wording: Wording
    examples: tuple[Instance, ...]
    model: PromptedModel
    expects: bool = False
    """True if the answer of a rating task is the expected value of its choices' probabilities."""

    @property
    def scores_choices(self) -> bool:
        """True if choices are scored by likelihood instead of being generated."""
        return has_choices(self.task) and self.model.gives_likelihoods

    def build_prompts(self, instance: Instance) -> list[InstancePrompt]:
        """Return an instance's prompts, with the context truncated to the maximum length.

        Raises:
            ModelError: the prompt is too long even without the context.
        """
        whole = self._build_full_prompts(instance)
        most = self.model.max_length - self._compute_answer_limit(whole)
        lengths = [self.model.count_tokens(question.prompt) for question in whole]
        if max(lengths) <= most:
            return whole
        bare = self._build_full_prompts(replace(instance, context=""))
        least = max(self.model.count_tokens(question.prompt) for question in bare)
        if least >= most:
            raise ModelError(
                f"instance {instance.id} of {self.task.name}: The prompt is too long. Without the "
                f"context, it has {least} tokens for the instruction, {len(self.examples)} "
                f"examples and the question, but max_length {self.model.max_length} allows "
                f"{most}, because {self.model.max_length - most} tokens are reserved for the "
                "answer. Raise the model's max_length, or use fewer shots."
            )
        context = self.model.truncate_text(instance.context, most - least, self.task.keeps)
        return self._build_full_prompts(replace(instance, context=context))

    def _build_full_prompts(self, instance: Instance) -> list[InstancePrompt]:
        listed = has_choices(self.task) and not self.model.gives_likelihoods
        return build_prompts(self.task, self.wording, instance, self.examples, listed=listed)

    def _compute_answer_limit(self, asked: Sequence[InstancePrompt]) -> int:
        """Return the number of tokens to reserve for the answer."""
        if not has_choices(self.task):
            return self.task.prompt.max_answer_tokens
        longest = max((text for question in asked for text in question.choices), key=len)
        return self.model.count_tokens(Prompt((longest,))) + EXTRA_ANSWER_TOKENS

    # --- answers ---

    def prompt_model(
        self, instances: Sequence[Instance], known: Sequence[str] = ()
    ) -> PromptedPredictions:
        """Prompt the model with instances, and return the predictions.

        Args:
            known: labels that an ``open_labels`` task may have.
        """
        results = PromptedPredictions()
        groups = range(0, len(instances), GROUP_SIZE)
        for begin in show_progress(groups, f"prompting, groups of {GROUP_SIZE}"):
            group = instances[begin : begin + GROUP_SIZE]
            prompts = [self.build_prompts(item) for item in group]
            flat = [prompt for item in prompts for prompt in item]
            results.questions += len(flat)
            replies: Iterator[Any]
            if self.scores_choices:
                replies = iter(self.model.compute_likelihoods(flat))
                for instance, each in zip(group, prompts, strict=True):
                    self._add_chosen_answer(results, instance, [next(replies) for _ in each])
            else:
                most = self._compute_answer_limit(flat)
                replies = iter(
                    self.model.generate([o.prompt for o in flat], most, self.wording.stops)
                )
                for each in prompts:
                    self._add_generated_answer(results, each, [next(replies) for _ in each], known)
        return results

    def _add_chosen_answer(
        self,
        results: PromptedPredictions,
        instance: Instance,
        answers: Sequence[list[Likelihood] | Unread],
    ) -> None:
        names = list_choice_answers(self.task)
        unread = [each.reason for each in answers if isinstance(each, Unread)]
        if unread:
            results.unreadable += len(unread)
            results.reasons.update(unread)
            results.likelihoods.append(None)
            results.ranks.append(None)
            read = [
                "" if isinstance(each, Unread) else names[_rank_choices(each)[0]]
                for each in answers
            ]
            read = [self._scale_middle] if self.expects else read
            results.predictions.append(() if self.task.kind == "multi_label" else tuple(read))
            return
        likelihoods = [each for each in answers if not isinstance(each, Unread)]
        if self.expects:
            rating = compute_expected_rating(self.task, likelihoods[0])
            results.likelihoods.append(None)
            results.ranks.append(None)
            results.predictions.append((f"{rating:.12g}",))
            return
        results.predictions.append(tuple(names[_rank_choices(scored)[0]] for scored in likelihoods))
        gold = names.index(instance.target[0]) if instance.target[0] in names else None
        single = len(likelihoods) == 1 and self.task.kind != "multi_label" and gold is not None
        results.likelihoods.append(
            likelihoods[0][gold].total if single and gold is not None else None
        )
        ranked = (
            _rank_choices(likelihoods[0]).index(gold) + 1 if single and gold is not None else None
        )
        results.ranks.append(ranked)

    def _add_generated_answer(
        self,
        results: PromptedPredictions,
        asked: Sequence[InstancePrompt],
        answers: Sequence[str | Unread],
        known: Sequence[str],
    ) -> None:
        results.likelihoods.append(None)
        results.ranks.append(None)
        unread = [each.reason for each in answers if isinstance(each, Unread)]
        results.reasons.update(unread)
        texts = ["" if isinstance(each, Unread) else each for each in answers]
        if not has_choices(self.task):
            results.unreadable += len(unread)
            results.predictions.append(parse_generated_answer(self.task, texts[0], known))
            return
        read = [
            parse_choice(self.task, question.choices, text)
            for question, text in zip(asked, texts, strict=True)
        ]
        results.unreadable += read.count(None)
        invalid = [text for name, text in zip(read, texts, strict=True) if name is None and text]
        results.examples = [*dict.fromkeys([*results.examples, *invalid])][:MAX_SHOWN_ANSWERS]
        if self.task.kind == "multi_label":
            results.predictions.append(tuple(name for name in read if name is not None))
            return
        if self.expects:
            results.predictions.append((self._scale_middle if read[0] is None else read[0],))
            return
        # A text that is not a choice is not an answer of the task, and counts as wrong.
        kept = (text if name is None else name for name, text in zip(read, texts, strict=True))
        results.predictions.append(tuple(kept))

    @property
    def _scale_middle(self) -> str:
        """Middle of the rating scale, which is predicted for unreadable answers."""
        return f"{sum(get_scale(self.task)) / 2:g}"


def compute_expected_rating(task: Task, choices: Sequence[Likelihood]) -> float:
    """Compute the expected rating from the choices' probabilities.

    Args:
        task: card of a rating task.
        choices: likelihood of each number of the scale.
    """
    most = max(choice.total for choice in choices)
    weights = [math.exp(choice.total - most) for choice in choices]
    ratings = map(float, list_choice_answers(task))
    products = (weight * rating for weight, rating in zip(weights, ratings, strict=True))
    return sum(products) / sum(weights)


def _rank_choices(choices: Sequence[Likelihood]) -> list[int]:
    """Rank choices by decreasing likelihood, with ties in their original order."""
    return sorted(range(len(choices)), key=lambda index: -choices[index].mean)


def build_prompter(
    task: Task, settings: Mapping[str, Any], train: Sequence[Instance], model: PromptedModel
) -> TaskPrompter:
    """Build the prompter of an evaluation.

    Args:
        settings: the evaluation's settings ``asked``.
        train: training instances of the task, from which examples are sampled. They may be empty
            for zero shots.
    """
    wording = get_wordings(task)[settings["wording"]]
    bare = TaskPrompter(task, wording, (), model, settings.get("rating") == EXPECTED)
    examples = sample_examples(task, train, settings["shots"], settings.get("seed", 0))
    limit = model.max_length // (len(examples) + 1)
    return replace(
        bare, examples=tuple(_truncate_example(bare, example, limit) for example in examples)
    )


def _truncate_example(prompter: TaskPrompter, example: Instance, limit: int) -> Instance:
    """Truncate an example's context so that the example fits the limit."""
    task, model = prompter.task, prompter.model
    bare = build_prompts(task, prompter.wording, replace(example, context=""))
    own = max(
        model.count_tokens(Prompt((question.prompt.turns[0],)))
        + model.count_tokens(
            Prompt((format_answer(task, prompter.wording, example, question.output),))
        )
        for question in bare
    )
    room = max(0, limit - own - CHAT_TEMPLATE_TOKENS)
    return replace(example, context=model.truncate_text(example.context, room, task.keeps))
