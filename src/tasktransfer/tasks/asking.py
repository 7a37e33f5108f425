"""How a language model that is not trained is asked about an instance, and how its answer is read.

Pure, and the same for every task: what differs stands in the cards' ``wordings``. A prompt is an
instruction, k examples with their answers, and the instance::

    <instruction>

    Dialogue: <context>
    <question>
    <answer> <words of the right answer>

    Dialogue: <context>
    <question>
    <answer>

Where the answer is one of a few, each is a *choice*: what a model finds likelier than the others is
its prediction. Other answers are written. A choice stands in the prompt's own words, and its
``answers`` are what the card calls it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from tasktransfer.core.digests import digest_of
from tasktransfer.tasks.card import Instance, Task, Wording
from tasktransfer.tasks.compose import filled, plain
from tasktransfer.tasks.ratings import scale_of, share_of

Role = Literal["user", "assistant"]

WRITTEN = ("span", "reply", "open_labels")
"""Kinds whose answers are written, not chosen."""
GENERIC = (
    Wording("Read the dialogue and answer the question about it.", "{asked}"),
    Wording("Each question is about the dialogue before it.", "Question: {asked}", "The answer is"),
)
"""For cards without wordings of their own. ``asked``: the card's prompt, and its labels."""
GENERIC_REPLY = (
    Wording("Continue the dialogue with its next utterance.", answer="Next utterance:"),
    Wording("What is said next in the dialogue?", answer="Next:"),
)
MOST_STEPS = 100
"""Whole numbers of a rating's scale that are offered as choices."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is said to a model: the user's turns and, between them, the assistant's, the user's
    first and last."""

    turns: tuple[str, ...]

    @property
    def text(self) -> str:
        """As one text, to be continued with a space and the answer."""
        pairs = zip(self.turns[::2], self.turns[1::2], strict=False)
        return "".join(f"{asked} {answer}\n\n" for asked, answer in pairs) + self.turns[-1]

    @property
    def messages(self) -> list[dict[str, str]]:
        """As a chat."""
        roles: tuple[Role, Role] = ("user", "assistant")
        return [{"role": roles[n % 2], "content": text} for n, text in enumerate(self.turns)]


@dataclass(frozen=True, slots=True)
class Asked:
    """One question about an instance. ``output``: which trait of a multi-output task, 0 of others.
    ``choices``: the words of each possible answer; none: it is written."""

    prompt: Prompt
    output: int
    choices: tuple[str, ...]


def wordings_of(task: Task) -> tuple[Wording, ...]:
    """How a task is asked about: at least two ways."""
    return task.wordings or (GENERIC_REPLY if task.kind == "reply" else GENERIC)


def wording_digest(task: Task, wording: Wording) -> str:
    """Digest of all that a wording makes of an instance of the task."""
    own = [task.prompt.template, task.prompt.label_words, task.labels, task.outputs]
    return digest_of([asdict(wording), own])[:16]


def chosen_from(task: Task) -> bool:
    """Whether answers are chosen among a few, and not written."""
    return task.kind not in WRITTEN


def questions(
    task: Task,
    wording: Wording,
    instance: Instance,
    examples: Sequence[Instance] = (),
    *,
    listed: bool = False,
) -> list[Asked]:
    """The questions about an instance: one a trait, of other tasks one.

    Args:
        examples: instances whose right answers are shown before.
        listed: the prompt says all choices, for a model that cannot be offered them.

    Raises:
        DataError: an instance lacks a field of the wording.
    """
    asked = []
    for output in range(len(task.outputs) or 1):
        turns: list[str] = []
        for example in examples:
            turns += [
                _turn(task, wording, example, output, listed),
                answer_words(task, wording, example, output),
            ]
        turns.append(_turn(task, wording, instance, output, listed))
        turns[0] = f"{_instruction(task, wording, instance)}\n\n{turns[0]}"
        choices = choice_words(task, wording, instance)
        asked.append(Asked(Prompt(tuple(turns)), output, choices))
    return asked


def _instruction(task: Task, wording: Wording, instance: Instance) -> str:
    named = {"labels": _labels_said(task, wording)}
    return filled(task, instance, wording.instruction, named)


def _turn(task: Task, wording: Wording, instance: Instance, output: int, listed: bool) -> str:
    fields = {**instance.query, "labels": _labels_said(task, wording)}
    if task.outputs:
        trait = task.outputs[output]
        fields["trait"] = wording.traits.get(trait, trait)
    if instance.options:
        fields["options"] = "\n".join(f"- {option}" for option in instance.options)
    if "{asked}" in wording.question:
        fields["asked"] = _asked(task, instance, fields)
    lines = [
        f"Dialogue: {instance.context}",
        filled(task, instance, wording.question, fields),
        _choices_said(task, wording, instance) if listed and chosen_from(task) else "",
        filled(task, instance, wording.answer, fields),
    ]
    return "\n".join(line for line in lines if line)


def _asked(task: Task, instance: Instance, fields: dict[str, str]) -> str:
    """The card's own prompt, with the labels where it does not name them."""
    template = task.prompt.template
    text = filled(task, instance, template, fields).strip(": ")
    if task.kind == "utterance_classification" and not instance.query:
        text += " of the last utterance"
    shown = "options" if task.kind == "multiple_choice" else "labels"
    if f"{{{shown}}}" in template or not fields.get(shown):
        return text
    return f"{text}\n{fields[shown]}" if shown == "options" else f"{text}: {fields[shown]}?"


def _choices_said(task: Task, wording: Wording, instance: Instance) -> str:
    return f"Write one of: {'; '.join(choice_words(task, wording, instance))}."


def _labels_said(task: Task, wording: Wording) -> str:
    if task.kind in ("multiple_choice", "rating"):
        return ""
    words = [_label_words(task, wording, label) for label in task.labels]
    return ", ".join(words[:-1]) + f" or {words[-1]}" if len(words) > 1 else "".join(words)


def _label_words(task: Task, wording: Wording, label: str) -> str:
    return wording.labels.get(label) or task.prompt.label_words.get(label, label)


def choice_words(task: Task, wording: Wording, instance: Instance) -> tuple[str, ...]:
    """The words of each possible answer, as ``choice_answers`` has them; none where it is
    written."""
    if not chosen_from(task):
        return ()
    if task.kind == "multiple_choice":
        return instance.options
    return tuple(_label_words(task, wording, answer) for answer in choice_answers(task))


def choice_answers(task: Task) -> tuple[str, ...]:
    """What the card calls each choice: its labels, of a rating the whole numbers of its scale."""
    if task.kind != "rating":
        return task.labels
    low, high = scale_of(task)
    steps = range(round(low), round(high) + 1)
    return tuple(map(str, steps[:: max(1, len(steps) // MOST_STEPS)]))


def answer_words(task: Task, wording: Wording, instance: Instance, output: int = 0) -> str:
    """The right answer of an example, in the wording's words."""
    if task.kind in ("span", "reply"):
        return instance.target[0]
    if task.kind == "rating":
        right = share_of(task, instance.target[0])
        return min(choice_answers(task), key=lambda step: abs(share_of(task, step) - right))
    if task.kind == "open_labels":
        return ", ".join(instance.target) or "none"
    if task.kind == "multiple_choice":
        return instance.options[task.labels.index(instance.target[0])]
    if task.kind == "multi_label":
        # One of them: a model that is offered choices gives one, too.
        return _label_words(task, wording, next(x for x in task.labels if x in instance.target))
    return _label_words(task, wording, instance.target[output])


def read_choice(task: Task, choices: Sequence[str], text: str) -> str | None:
    """The card's name of the choice that a written text is; None: it is no choice.

    Case, white space, quotes and a full stop do not count. Nothing is guessed: a text that has a
    choice among other words is none.
    """
    written = _bare(text)
    for answer, words in zip(choice_answers(task), choices, strict=True):
        if written == _bare(words):
            return answer
    return None


def read_written(task: Task, text: str, known: Sequence[str] = ()) -> tuple[str, ...]:
    """The prediction that a written text is. ``known``: labels of an ``open_labels`` task."""
    answer = text.strip().strip("\"“”'").strip()
    if task.kind != "open_labels":
        return (answer,)
    names = {plain(name): name for name in known}
    parts = (plain(part) for part in answer.split(","))
    return tuple(dict.fromkeys(names[part] for part in parts if part in names))


def _bare(text: str) -> str:
    return plain(text.strip().strip("\"“”'`*.-")).rstrip(".")
