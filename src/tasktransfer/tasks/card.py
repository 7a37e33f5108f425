"""Task cards: a task is data, not code.

A card gives the kind of a task, its labels, the input format of each model family, its metrics and
its origin. All code that trains, scores or plots reads the card. No code branches on a task's name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any, Literal

from tasktransfer.core.identity import compute_digest, select_later_versions
from tasktransfer.core.specs import Family

TaskKind = Literal[
    "utterance_classification",
    "dialogue_classification",
    "multi_label",
    "multi_output",
    "multiple_choice",
    "span",
    "reply",
    "open_labels",
    "rating",
]
"""Type of a task's answer.

Utterance and dialogue classification have one label and differ only in their input. The answer of
``span`` is a piece of the context. The answer of ``reply`` is the next utterance, chosen from
candidates or generated. ``open_labels`` have any number of labels of the training split, which the
card does not list. The answer of ``rating`` is a number on a scale, whose two ends are the card's
labels (``get_scale``)."""

SINGLE_LABEL = ("utterance_classification", "dialogue_classification")
"""Kinds of tasks whose instances have one class."""

MetricName = Literal[
    "accuracy",
    "f1",
    "multilabel_f1",
    "exact_match",
    "token_f1",
    "bleu",
    "bleu2",
    "bleu2_exchanged",
    "rouge_l",
    "meteor",
    "closeness",
]

KINDS_WITHOUT_LABELS = ("span", "reply", "open_labels")
"""Kinds whose cards list no labels."""

REPLY_METRICS = ("bleu", "bleu2", "bleu2_exchanged", "rouge_l", "meteor")
"""Metrics of reply tasks. Other tasks cannot use them."""

SPLITS = ("train", "dev", "test")

FIELDS_OUTSIDE_DIGEST = (
    *("name", "short", "dataset", "description", "citation", "licence", "recipes"),
    "wordings",
)
"""Fields of ``Task`` that are not part of its digest.

The task's name and the recipe of its training runs are in the identity of each node that reads the
task. A prompt template (``wordings``) is in the identity of the evaluations that use it."""

CARD_DIGITS = 16
"""Number of hex digits of a card's digest: a node's JSON has one per task of its dataset."""


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric of a task, with the settings of the release's metadata.

    Args:
        name: name of the metric.
        average: micro, macro or weighted. None if the metric has no average over classes.
        label_indices: classes that count, for example all emotions except neutral. None for all.
        unanswerable_phrases: answers of unanswerable questions (spans).
        ignore_unanswerable: whether unanswerable questions do not count (spans).
    """

    name: MetricName
    average: Literal["micro", "macro", "weighted"] | None = None
    label_indices: tuple[int, ...] | None = None
    unanswerable_phrases: tuple[str, ...] = ()
    ignore_unanswerable: bool = False

    @property
    def key(self) -> str:
        """Name of the metric in records and tables, for example ``micro_f1``."""
        return f"{self.average}_{self.name}" if self.average else self.name


@dataclass(frozen=True, slots=True)
class Prompt:
    """Prompt of text-to-text models (paper, Tables 4 and 5).

    The input is ``context: <context>`` followed by ``template`` with the instance's query fields,
    its options (``{options}``) and the task's label words (``{labels}``) filled in.
    """

    template: str
    max_answer_tokens: int
    label_words: dict[str, str] = field(default_factory=dict)
    """Label → verbalizer that a text-to-text model reads and generates; other labels are their own
    verbalizers."""
    joiner: str = " and "
    """Separator between the labels of a multi-label answer."""


@dataclass(frozen=True, slots=True)
class Wording:
    """A prompt template for a language model that is not fine-tuned (``tasks.asking``).

    ``instruction``, ``question`` and ``answer`` are templates. They may contain ``{options}`` (one
    per line), ``{labels}`` (all verbalizers) and ``{trait}``. ``question`` and ``answer`` may also
    contain the query's fields.

    Args:
        instruction: instruction, once per prompt.
        question: question after each dialogue.
        answer: text before the answer.
        labels: label → verbalizer. Other labels use the verbalizers of the card's ``prompt``.
        traits: trait → its words, for multi-output tasks.
        stops: texts that end a generated answer.
    """

    instruction: str
    question: str = ""
    answer: str = "Answer:"
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    traits: Mapping[str, str] = field(default_factory=dict, hash=False)
    stops: tuple[str, ...] = ("\n",)


@dataclass(frozen=True, slots=True)
class ToolkitForms:
    """Input formats of the paper's toolkit, where they differ from the paper.

    Args:
        encoder: template of the single text that an encoder reads: the query's fields,
            ``{context}``, ``{option}`` and ``{sep}``, the tokenizer's separator.
        answer_tokens: maximum number of tokens in a decoder's answer.
        answer_in: query field that contains the span for an encoder. Empty for the context.
        zero_stays: whether an answer at the start of its context is searched at the start of the
            whole text.
        most_words: maximum number of words in the context of text-to-text models, which is
            shortened by whole turns. None for no limit.
        turns_reversed: whether an encoder reads the newest turn first.
        after_prompt: end of the prompt of text-to-text models.
        fallback: label of a multi-label task for a generated answer without any label.
        lists_answers: whether the gold answers are a list even if there is one answer. The micro
            token-F1 of such a task is computed in another way (``metrics.texts``).
    """

    encoder: str
    answer_tokens: int
    answer_in: str = ""
    zero_stays: bool = False
    most_words: int | None = None
    turns_reversed: bool = False
    after_prompt: str = ""
    fallback: str = ""
    lists_answers: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """One task of one dataset.

    Args:
        name: full name of the task.
        short: short name for figures and tables.
        dataset: name of its dataset.
        kind: type of its answer.
        labels: all labels. Empty for spans; the option numbers for multiple choice; the two answers
            of each trait for multi-output.
        metrics: metrics that are reported.
        query: template of an encoder's first segment. Empty if an encoder reads the context alone.
        prompt: prompt of text-to-text models.
        description: the task in one sentence.
        citation: source of the task.
        licence: licence of its data.
    """

    name: str
    short: str
    dataset: str
    kind: TaskKind
    labels: tuple[str, ...]
    metrics: tuple[MetricSpec, ...]
    query: str
    prompt: Prompt
    description: str
    citation: str
    licence: str
    paper_metrics: tuple[str, ...] = ()
    """Metrics of this task in the paper's Table 1, by ``MetricSpec.key``. Their mean is the task's
    score. The other metrics of the release are reported only."""
    toolkit: ToolkitForms | None = None
    """Input formats of the paper's toolkit, for ``fidelity.inputs: tlidb``."""
    outputs: tuple[str, ...] = ()
    """Traits of a multi-output task, in the release's order and spelling."""
    every_mention: bool = False
    """True if the answer of a span task is correct wherever the context has it as whole words.
    False if it is correct only at the release's position."""
    keeps: Literal["end", "beginning", "both"] = "end"
    """End of the context that is kept if an input is too long, or both ends. A target utterance is
    at the end. A task without one may lose fewer answers if the beginning is kept."""
    by_head: bool = False
    """True if models of all families, including text-to-text models, answer with a linear head on
    their encoding of the context."""
    first: Literal["query", "context"] = "query"
    """First segment of an encoder's input. Truncation always cuts the context."""
    loss: Literal["cross_entropy", "squared_error"] = "cross_entropy"
    """Loss between a rating, as a fraction of its scale, and the sigmoid of the output."""
    recipes: Mapping[Family, int] = field(default_factory=dict, hash=False)
    """Model family → version of the training recipe for this task (``core.identity``).

    A version is increased when the family's inputs or answers for this task change. Families with
    the same version as for other tasks are left out."""
    answers_in: str = ""
    """Digest of the fields of the answers, for tasks of declared datasets."""
    wordings: tuple[Wording, ...] = ()
    """Prompt templates for language models that are not fine-tuned. Empty for the templates of
    ``tasks.asking`` for the kind."""

    @property
    def classes(self) -> int:
        """Number of classes of an answer, or 0 for spans and replies."""
        return len(self.labels)


def compute_card_digest(task: Task) -> str:
    """Compute the digest of those parts of a card that affect results.

    Fields that have their defaults are left out, so that a new field does not change old digests.
    The version of a metric is left out until it is raised.
    """
    content = _collect_changed_fields(task)
    numbers = {key: value for key, value in content.items() if key not in FIELDS_OUTSIDE_DIGEST}
    measures = select_later_versions("measure", ("score", *(spec.key for spec in task.metrics)))
    if measures:
        numbers["versions"] = measures
    return compute_digest(numbers)[:CARD_DIGITS]


def _collect_changed_fields(value: Any) -> Any:
    """Return a card (or a part) as JSON values, without fields at their default."""
    if isinstance(value, tuple):
        return [_collect_changed_fields(item) for item in value]
    if not is_dataclass(value):
        return value
    plain: dict[str, Any] = {}
    for item in fields(value):
        default = item.default if item.default_factory is MISSING else item.default_factory()
        content = getattr(value, item.name)
        if content != default:
            plain[item.name] = _collect_changed_fields(content)
    return plain


@dataclass(frozen=True, slots=True)
class Instance:
    """One annotated item, read from the release and validated, before tokenization.

    Args:
        id: the release's instance_id. It may repeat (14 times in relation extraction's test split),
            so an instance is identified by its position in its split.
        dialogue_id: name of its dialogue.
        task: name of its task.
        context: the turns, joined as ``speaker: utterance``.
        focus: character offset in the context of the part that truncation must keep whole, the
            target utterance. ``len(context)`` if there is none.
        query: fields that the card's templates name.
        options: texts of the options (multiple choice).
        target: gold answer: one label, all labels (multi-label), one answer per trait
            (multi-output), the number of the option, or the texts of all gold spans.
        starts: character offset of each gold span in the context, -1 for an unanswerable one.
    """

    id: str
    dialogue_id: str
    task: str
    context: str
    focus: int
    query: dict[str, str]
    options: tuple[str, ...]
    target: tuple[str, ...]
    starts: tuple[int, ...] = ()
    turns: tuple[int, ...] = ()
    """Character offsets of the context's turns. Empty if the reader gives none."""


SCALE_STEPS = 1_000_000
"""Number of steps of a rating scale, whose two ends are the labels of the task's card.

A model answers with a fraction of the scale, 0 at its first end and 1 at its second. Encoded data
stores a rating as its step.
"""


def get_scale(card: Task) -> tuple[float, float]:
    """Return the lowest and the highest rating of a card's scale."""
    low, high = map(float, card.labels)
    return low, high


def compute_fraction(card: Task, rating: str) -> float:
    """Convert a rating to a fraction of its scale, 0 to 1, or NaN if it is invalid."""
    low, high = get_scale(card)
    try:
        fraction = (float(rating) - low) / (high - low)
    except ValueError:
        return math.nan
    return fraction if 0 <= fraction <= 1 else math.nan


def format_ratings(card: Task, fractions: Sequence[float]) -> list[tuple[str]]:
    """Convert fractions of a card's scale to ratings, each a tuple of one text.

    The ratings have twelve digits, because rounded ratings would be ties in rank correlations.
    """
    low, high = get_scale(card)
    return [(f"{low + fraction * (high - low):.12g}",) for fraction in fractions]


def find_scale_problem(card: Task) -> str | None:
    """Describe the problem with a rating card's scale, or return None."""
    try:
        low, high = get_scale(card)
    except ValueError:
        return (
            f"labels: {card.labels!r} are not the two ends of a scale. Give the lower and the "
            "higher end as numbers."
        )
    if low < high:
        return None
    return f"labels: The scale from {low:g} to {high:g} does not rise. Give the lower end first."


def find_answer_spans(task: Task, instance: Instance) -> list[tuple[int, int]]:
    """Find the gold answers in the context, as (start, end) in characters.

    These are the release's positions, or all mentions if the card has ``every_mention``. The list
    of an unanswerable instance is empty.
    """
    if task.every_mention:
        return [
            (start, start + len(name))
            for name in instance.target
            for start in find_mentions(name, instance.context)
        ]
    return [
        (start, start + len(text))
        for text, start in zip(instance.target, instance.starts, strict=True)
        if start >= 0
    ]


def find_mentions(name: str, context: str) -> list[int]:
    """Find a name in a context as whole words, ignoring case, and return its offsets."""
    pattern = rf"(?<!\w){re.escape(name)}(?!\w)"
    return [match.start() for match in re.finditer(pattern, context, re.IGNORECASE)]
