"""Prompts for language models that are not fine-tuned, and parsing of their answers.

The functions are pure and identical for all tasks: differences are in the cards' ``wordings``. A
prompt is an instruction, k examples with their answers, and the instance::

    <instruction>

    Dialogue: <context>
    <question>
    <answer> <words of the gold answer>

    Dialogue: <context>
    <question>
    <answer>

If a task has a few possible answers, each is a *choice*, and the prediction is the most likely
choice. Other answers are generated. Choices are verbalized in the words of the prompt template, and
``list_choice_answers`` returns the card's label for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from tasktransfer.core.identity import compute_digest
from tasktransfer.tasks.card import Instance, Task, Wording, compute_fraction, get_scale
from tasktransfer.tasks.compose import fill_template, list_fields, normalise_text

Role = Literal["user", "assistant"]

GENERATED_KINDS = ("span", "reply", "open_labels")
"""Kinds whose answers are generated instead of chosen."""
GENERIC_WORDINGS = (
    Wording("Read the dialogue and answer the question about it.", "{asked}"),
    Wording("Each question is about the dialogue before it.", "Question: {asked}", "The answer is"),
)
"""Templates for cards without ``wordings``. ``{asked}`` is the card's prompt with its labels."""
GENERIC_REPLY_WORDINGS = (
    Wording("Continue the dialogue with its next utterance.", answer="Next utterance:"),
    Wording("What is said next in the dialogue?", answer="Next:"),
)
MAX_RATING_CHOICES = 100
"""Approximate maximum number of choices for a rating, which are whole numbers of its scale."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as alternating turns of user and assistant. The first and last are the user's."""

    turns: tuple[str, ...]

    @property
    def text(self) -> str:
        """Prompt as one text, to be continued with a space and the answer."""
        pairs = zip(self.turns[::2], self.turns[1::2], strict=False)
        return "".join(f"{question} {answer}\n\n" for question, answer in pairs) + self.turns[-1]

    @property
    def messages(self) -> list[dict[str, str]]:
        """Prompt as chat messages."""
        roles: tuple[Role, Role] = ("user", "assistant")
        return [{"role": roles[n % 2], "content": text} for n, text in enumerate(self.turns)]


@dataclass(frozen=True, slots=True)
class InstancePrompt:
    """One prompt for an instance: for a trait of a multi-output task, or for the whole instance.

    Args:
        prompt: the prompt.
        output: index of the trait of a multi-output task. 0 for other tasks.
        choices: words of each possible answer. Empty if the answer is generated.
    """

    prompt: Prompt
    output: int
    choices: tuple[str, ...]


def get_wordings(task: Task) -> tuple[Wording, ...]:
    """Return at least two prompt templates for a task."""
    return task.wordings or (GENERIC_REPLY_WORDINGS if task.kind == "reply" else GENERIC_WORDINGS)


def compute_wording_digest(task: Task, wording: Wording) -> str:
    """Compute the digest of everything in a card and a template that determines prompts."""
    own = [task.prompt.template, task.prompt.label_words, task.labels, task.outputs]
    return compute_digest([asdict(wording), own])[:16]


def list_hidden_fields(task: Task) -> tuple[str, ...]:
    """Return the fields of an instance that encoders read but a prompt template omits.

    The options of a multiple-choice task are choices, so no template has to show them.
    """
    if task.kind == "multiple_choice":
        return ()

    def list_shown(wording: Wording) -> set[str]:
        texts = [wording.instruction, wording.question, wording.answer]
        shown = {name for text in texts for name in list_fields(text)}
        return shown | ({*list_fields(task.prompt.template)} if "asked" in shown else set())

    shown = set.intersection(*map(list_shown, get_wordings(task)))
    return tuple(name for name in list_fields(task.query) if name not in shown)


def format_turns(context: str, separator: str) -> str:
    """Format the utterances of two people as lines with Speaker or Listener.

    The last utterance is the speaker's, because the listener replies to it.

    Args:
        separator: text between the utterances of the context.
    """
    utterances = context.split(separator)
    names = ("Speaker", "Listener")
    last = len(utterances) - 1
    lines = (f"{names[(last - n) % 2]}: {text}" for n, text in enumerate(utterances))
    return "\n".join(lines)


def has_choices(task: Task) -> bool:
    """Return whether a task's answers are chosen from a list instead of generated."""
    return task.kind not in GENERATED_KINDS


def build_prompts(
    task: Task,
    wording: Wording,
    instance: Instance,
    examples: Sequence[Instance] = (),
    *,
    listed: bool = False,
) -> list[InstancePrompt]:
    """Build an instance's prompts: one per trait for multi-output tasks, otherwise one.

    Args:
        task: card of the task.
        wording: prompt template.
        instance: the instance.
        examples: few-shot examples, shown with their gold answers.
        listed: whether the prompt lists all choices, for models that do not score choices.

    Raises:
        DataError: an instance has no value for a field of the template.
    """
    prompts = []
    for output in range(len(task.outputs) or 1):
        turns: list[str] = []
        for example in examples:
            turns += [
                _make_turn(task, wording, example, output, listed),
                format_answer(task, wording, example, output),
            ]
        turns.append(_make_turn(task, wording, instance, output, listed))
        turns[0] = f"{_make_instruction(task, wording, instance)}\n\n{turns[0]}"
        choices = list_choice_words(task, wording, instance)
        prompts.append(InstancePrompt(Prompt(tuple(turns)), output, choices))
    return prompts


def _make_instruction(task: Task, wording: Wording, instance: Instance) -> str:
    named = {"labels": _format_labels(task, wording)}
    return fill_template(task, instance, wording.instruction, named)


def _make_turn(task: Task, wording: Wording, instance: Instance, output: int, listed: bool) -> str:
    fields = {**instance.query, "labels": _format_labels(task, wording)}
    if task.outputs:
        trait = task.outputs[output]
        fields["trait"] = wording.traits.get(trait, trait)
    if instance.options:
        fields["options"] = "\n".join(f"- {option}" for option in instance.options)
    if "{asked}" in wording.question:
        fields["asked"] = _fill_card_prompt(task, instance, fields)
    lines = [
        f"Dialogue: {instance.context}",
        fill_template(task, instance, wording.question, fields),
        _format_choices(task, wording, instance) if listed and has_choices(task) else "",
        fill_template(task, instance, wording.answer, fields),
    ]
    return "\n".join(line for line in lines if line)


def _fill_card_prompt(task: Task, instance: Instance, fields: dict[str, str]) -> str:
    """Return the card's own prompt, followed by labels or options that it does not contain."""
    template = task.prompt.template
    text = fill_template(task, instance, template, fields).strip(": ")
    if task.kind == "utterance_classification" and not instance.query:
        text += " of the last utterance"
    shown = "options" if task.kind == "multiple_choice" else "labels"
    if f"{{{shown}}}" in template or not fields.get(shown):
        return text
    return f"{text}\n{fields[shown]}" if shown == "options" else f"{text}: {fields[shown]}?"


def _format_choices(task: Task, wording: Wording, instance: Instance) -> str:
    return f"Write one of: {'; '.join(list_choice_words(task, wording, instance))}."


def _format_labels(task: Task, wording: Wording) -> str:
    if task.kind in ("multiple_choice", "rating"):
        return ""
    words = [_get_label_words(task, wording, label) for label in task.labels]
    return ", ".join(words[:-1]) + f" or {words[-1]}" if len(words) > 1 else "".join(words)


def _get_label_words(task: Task, wording: Wording, label: str) -> str:
    return wording.labels.get(label) or task.prompt.label_words.get(label, label)


def list_choice_words(task: Task, wording: Wording, instance: Instance) -> tuple[str, ...]:
    """Return the words for each choice, in the order of ``list_choice_answers``.

    The result is empty if the answer is generated.
    """
    if not has_choices(task):
        return ()
    if task.kind == "multiple_choice":
        return instance.options
    return tuple(_get_label_words(task, wording, answer) for answer in list_choice_answers(task))


def list_choice_answers(task: Task) -> tuple[str, ...]:
    """Return the label of each choice, or the whole numbers of a rating scale."""
    if task.kind != "rating":
        return task.labels
    low, high = get_scale(task)
    steps = range(round(low), round(high) + 1)
    return tuple(map(str, steps[:: max(1, len(steps) // MAX_RATING_CHOICES)]))


def format_answer(task: Task, wording: Wording, instance: Instance, output: int = 0) -> str:
    """Format an example's gold answer in the words of the template."""
    if task.kind in ("span", "reply"):
        return instance.target[0]
    if task.kind == "rating":
        right = compute_fraction(task, instance.target[0])
        return min(
            list_choice_answers(task), key=lambda step: abs(compute_fraction(task, step) - right)
        )
    if task.kind == "open_labels":
        return ", ".join(instance.target) or "none"
    if task.kind == "multiple_choice":
        return instance.options[task.labels.index(instance.target[0])]
    if task.kind == "multi_label":
        # An example shows one label only, because a model that chooses predicts one as well.
        return _get_label_words(task, wording, next(x for x in task.labels if x in instance.target))
    return _get_label_words(task, wording, instance.target[output])


def parse_choice(task: Task, choices: Sequence[str], text: str) -> str | None:
    """Parse a generated choice to a label, or return None if it is not a choice.

    Case, white space, quotes and a final full stop are ignored. A text that contains a choice among
    other words is not a choice.
    """
    generated = _strip_marks(text)
    for answer, words in zip(list_choice_answers(task), choices, strict=True):
        if generated == _strip_marks(words):
            return answer
    return None


def parse_generated_answer(task: Task, text: str, known: Sequence[str] = ()) -> tuple[str, ...]:
    """Parse a generated answer to its text, or to known labels for an ``open_labels`` task.

    Args:
        task: card of the task.
        text: generated text.
        known: labels of an ``open_labels`` task.
    """
    answer = text.strip().strip("\"“”'").strip()
    if task.kind != "open_labels":
        return (answer,)
    names = {normalise_text(name): name for name in known}
    parts = (normalise_text(part) for part in answer.split(","))
    return tuple(dict.fromkeys(names[part] for part in parts if part in names))


def _strip_marks(text: str) -> str:
    return normalise_text(text.strip().strip("\"“”'`*.-")).rstrip(".")
