"""What a task is: data, not code.

A card says what kind of task it is, how its labels are spelled, how an instance is put to each
family of models, how it is scored, and where it comes from. Everything that trains, scores or
draws reads the card; nothing branches on a task's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any, Literal

from tasktransfer.core.digests import digest_of
from tasktransfer.core.specs import Family
from tasktransfer.core.versions import raised

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
"""How an instance is answered. Utterance and dialogue classification differ in their input only;
both take one label. ``span`` answers with a piece of the context, ``reply`` with the next
utterance, chosen among candidates or written. ``open_labels``: any number of labels out of those of
the training split, which the card does not list. ``rating`` answers with a number on a scale, whose
two ends are the card's labels (``tasks.ratings``)."""

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

WITHOUT_LABELS = ("span", "reply", "open_labels")
"""Kinds whose cards list no labels."""

OF_REPLIES = ("bleu", "bleu2", "bleu2_exchanged", "rouge_l", "meteor")
"""Metrics of reply tasks, and of them alone."""

SPLITS = ("train", "dev", "test")

CHANGES_NO_NUMBER = (
    *("name", "short", "dataset", "description", "citation", "licence", "recipes"),
    "wordings",
)
"""Fields of ``Task`` that are no part of its digest. The name and the recipe of its trainings are
in the identity of whatever reads the task; a wording is in that of the evaluations which ask by
it."""

CARD_DIGITS = 16
"""Hex digits of a card's digest: a node's JSON has one for every task of its dataset."""


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric of a task, with the settings that the release's metadata gives.

    ``average`` is micro, macro or weighted; ``label_indices`` restricts which classes count (an
    emotion task may leave neutral out); ``unanswerable_phrases`` and ``ignore_unanswerable`` apply
    to spans.
    """

    name: MetricName
    average: Literal["micro", "macro", "weighted"] | None = None
    label_indices: tuple[int, ...] | None = None
    unanswerable_phrases: tuple[str, ...] = ()
    ignore_unanswerable: bool = False

    @property
    def key(self) -> str:
        """The name of this metric in records and tables, for example ``micro_f1``."""
        return f"{self.average}_{self.name}" if self.average else self.name


@dataclass(frozen=True, slots=True)
class Prompt:
    """How an instance is put to text-to-text models (paper, Tables 4 and 5).

    The input is ``context: <context>`` followed by ``template`` with the instance's query fields,
    its options (``{options}``) and the task's label words (``{labels}``) filled in.
    """

    template: str
    max_answer_tokens: int
    label_words: dict[str, str] = field(default_factory=dict)
    """Label → the words that a text-to-text model reads and writes; a label not listed here
    stands for itself."""
    joiner: str = " and "
    """What stands between several labels of a multi-label answer."""


@dataclass(frozen=True, slots=True)
class Wording:
    """One way to ask a language model, which is not trained, about an instance (``tasks.asking``).

    ``instruction``: what is to be done, said once. ``question``: what is asked behind each
    dialogue. ``answer``: what stands before the answer. All three are templates: of the query's
    fields (but for the instruction), ``{options}`` (a line each), ``{labels}`` (all words of
    labels) and ``{trait}``. ``labels``: label → its words; a label not listed here has those of the
    card's ``prompt``. ``traits``: likewise, of a multi-output task. ``stops``: texts that end a
    written answer.
    """

    instruction: str
    question: str = ""
    answer: str = "Answer:"
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    traits: Mapping[str, str] = field(default_factory=dict, hash=False)
    stops: tuple[str, ...] = ("\n",)


@dataclass(frozen=True, slots=True)
class ToolkitForms:
    """How the paper's toolkit puts an instance to models, where that is not the paper's way.

    ``encoder``: the one text that an encoder reads, with the query's fields, ``{context}``,
    ``{option}`` and ``{sep}``, the tokenizer's separator. ``answer_tokens``: of a decoder's answer
    at most. ``answer_in``: the query field in which an encoder finds a span, where that is not the
    context. ``zero_stays``: an answer that begins its context is looked for at the beginning of the
    whole text. ``most_words``: text-to-text models read no context of more words, whole turns are
    left out. ``turns_reversed``: an encoder reads the newest turn first. ``after_prompt``: what
    ends the prompt of text-to-text models. ``fallback``: the label that stands for a generated
    answer in which a multi-label task finds none. ``lists_answers``: the right answers are a list,
    also where there is one, which its micro token-F1 counts in another way (``metrics.texts``).
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

    ``query`` is the template of the text that an encoder reads beside the context (as the first
    segment); empty where the context alone is read. ``labels`` is empty for spans; for multiple
    choice they are the option numbers; for multi-output they are the two answers of each trait.
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
    """The metrics that the paper's Table 1 names for this task, by ``MetricSpec.key``: their mean
    is the task's score. The release may list more, which are reported and not scored."""
    toolkit: ToolkitForms | None = None
    """How the paper's toolkit puts it to models, for ``fidelity.inputs: tlidb``."""
    outputs: tuple[str, ...] = ()
    """The traits of a multi-output task, in the release's order and spelling."""
    every_mention: bool = False
    """Span tasks: whether an answer is right wherever the context has it as whole words, and not
    only where the release points."""
    keeps: Literal["end", "beginning", "both"] = "end"
    """The end of the context that stays where an input is too long, or both ends. A target
    utterance is at the end; a task without one may lose fewer answers the other way."""
    by_head: bool = False
    """Whether any family answers by a linear layer on its encoding of the context, text-to-text
    models too."""
    first: Literal["query", "context"] = "query"
    """Which of the two an encoder reads first. Truncation cuts the context either way."""
    loss: Literal["cross_entropy", "squared_error"] = "cross_entropy"
    """Of ratings: between the rating as a share of its scale and the sigmoid of the output."""
    recipes: Mapping[Family, int] = field(default_factory=dict, hash=False)
    """The recipe (``core.versions``) of a family's trainings on this task, where it is
    a later one than other tasks': raised when what this family reads or answers here changes."""
    answers_in: str = ""
    """Of a declared dataset: a digest of the fields that its answers are in."""
    wordings: tuple[Wording, ...] = ()
    """How a language model is asked that is not trained; none: as ``tasks.asking`` asks about any
    task of the kind."""

    @property
    def classes(self) -> int:
        """Number of classes of one answer; 0 for spans and replies."""
        return len(self.labels)


def card_digest(task: Task) -> str:
    """Digest of what of a card changes numbers: kind, labels, texts, how it is scored. A field at
    its default stays out, so that a new field leaves old digests alone; so do the versions of its
    measures until they are raised."""
    content = _not_at_default(task)
    numbers = {key: value for key, value in content.items() if key not in CHANGES_NO_NUMBER}
    measures = raised("measure", ("score", *(spec.key for spec in task.metrics)))
    if measures:
        numbers["versions"] = measures
    return digest_of(numbers)[:CARD_DIGITS]


def _not_at_default(value: Any) -> Any:
    """A card, or a part of one, as plain JSON values without what is at its default."""
    if isinstance(value, tuple):
        return [_not_at_default(item) for item in value]
    if not is_dataclass(value):
        return value
    plain: dict[str, Any] = {}
    for each in fields(value):
        default = each.default if each.default_factory is MISSING else each.default_factory()
        held = getattr(value, each.name)
        if held != default:
            plain[each.name] = _not_at_default(held)
    return plain


@dataclass(frozen=True, slots=True)
class Instance:
    """One annotated item, read from the release and validated, before any tokenizer sees it.

    ``id`` is the release's instance_id and may repeat (14 times in relation extraction's test);
    an instance is therefore identified by its position in its split. ``context`` is the turns
    joined as ``speaker: utterance``. ``focus`` is the character offset in the context at which the
    part starts that truncation must keep whole (the target utterance; ``len(context)`` where there
    is none). ``query`` holds the fields that the card's templates name. ``target`` holds the right
    label (one), labels (multi-label), one answer per trait (multi-output), the option's number, or
    every right answer's text (span); ``starts`` the character offset in the context of each right
    answer of a span task, -1 for an unanswerable one.
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
    """Character offsets at which the context's turns begin; none where the reader gives none."""
