"""Cards of the domains, the labeller's task and the rated sets (PoE, Tables I and II).

They belong to one dataset. The answer to every task is a rating of how well a response fits its
context. An encoder reads the context first, then the response (section IV).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tasktransfer.tasks.card import MetricSpec, Prompt, Task, Wording

DIALOGUES = "PanelDialogues"
TINY = "PanelTiny"

LABELLER = "labeller"
EVERYTHING = "everything"
"""Task of a model that is trained on all domains."""
GIVEN = "given_labels"
"""Task with a user's probabilities that pairs fit, from DEB or another model."""
SELECTION = "response_selection"
RATINGS = "all_ratings"
"""Task with the items of all rated sets of a study, which a model rates in one evaluation."""

_PAPER = "Zhang et al. 2022, PoE: a Panel of Experts for Generalized Automatic Dialogue Assessment"


@dataclass(frozen=True, slots=True)
class RatedSet:
    """Responses with human ratings (Table II).

    Args:
        name: name of the task.
        published: the paper's name.
        domain: domain whose expert rates the set; empty if it is outside all domains.
        criterion: the rated criterion that is closest to appropriateness.
        low: lower end of the scale.
        high: upper end of the scale.
    """

    name: str
    published: str
    domain: str
    criterion: str
    low: float
    high: float


def _build_rated_set(
    published: str, domain: str, criterion: str, low: float, high: float
) -> RatedSet:
    name = published.replace("-", "_")
    return RatedSet(name, published, domain, criterion, low, high)


RATED: dict[str, RatedSet] = {
    one.name: one
    for one in (
        _build_rated_set("Persona-USR", "ConvAI2", "Maintains Context", 1, 3),
        _build_rated_set("Persona-Zhao", "ConvAI2", "Appropriateness", 1, 5),
        _build_rated_set("Persona-DSTC10", "ConvAI2", "Appropriateness", 1, 5),
        _build_rated_set("ConvAI2-GRADE", "ConvAI2", "Relevance", 1, 5),
        _build_rated_set("DailyDialog-GRADE", "DailyDialog", "Relevance", 1, 5),
        _build_rated_set("DailyDialog-Zhao", "DailyDialog", "Appropriateness", 1, 5),
        _build_rated_set("DailyDialog-Gupta", "DailyDialog", "Overall", 1, 5),
        _build_rated_set("Topical-USR", "TopicalChat", "Maintains Context", 1, 3),
        _build_rated_set("Topical-DSTC10", "TopicalChat", "Appropriateness", 1, 5),
        _build_rated_set("Empathetic-GRADE", "Empathetic", "Relevance", 1, 5),
        _build_rated_set("Reddit-DSTC7", "Reddit", "Relevance", 1, 5),
        _build_rated_set("FED-Turn", "", "Relevant", 0, 2),
        _build_rated_set("HUMOD", "", "Relevance", 1, 5),
        _build_rated_set("ESL", "", "Overall", 1, 5),
        _build_rated_set("NCME", "", "Overall", 1, 5),
        _build_rated_set("ConTurE", "", "Overall", 0, 2),
    )
}
AT_HAND = tuple(
    name
    for name in RATED
    if name not in ("Persona_DSTC10", "Topical_DSTC10", "HUMOD", "ESL", "NCME")
)

DOMAINS = ("DailyDialog", "Empathetic", "ConvAI2", "TopicalChat", "Reddit", "Own")
"""Domains of the study; ``Own`` is a user's folder of dialogues."""

TINY_DOMAINS = ("Harbour", "Orchard", "Workshop")
TINY_RATED: dict[str, RatedSet] = {
    one.name: one
    for one in (
        _build_rated_set("Harbour-Tiny", "Harbour", "planted quality", 1, 5),
        _build_rated_set("Orchard-Tiny", "Orchard", "planted quality", 1, 5),
        _build_rated_set("Market-Tiny", "", "planted quality", 1, 5),
    )
}


def make_pair_task(
    name: str, dataset: str, what: str, measure: Literal["accuracy", "closeness"] = "accuracy"
) -> Task:
    """Return the card of a task on pairs of context and response, with 1 as a perfect fit."""
    return Task(
        name=name,
        short=name,
        dataset=dataset,
        kind="rating",
        labels=("0", "1"),
        metrics=(MetricSpec(measure),),
        query="{response}",
        prompt=Prompt("fits:", max_answer_tokens=4),
        description=what,
        citation=_PAPER,
        licence="as the corpus states",
        first="context",
    )


def make_rated_task(rated: RatedSet, dataset: str) -> Task:
    """Return the card of a task with human ratings, fitted by squared error (section IV-E)."""
    return Task(
        name=rated.name,
        short=rated.name,
        dataset=dataset,
        kind="rating",
        labels=(f"{rated.low:g}", f"{rated.high:g}"),
        metrics=(MetricSpec("closeness"),),
        query="{response}",
        prompt=Prompt("rating:", max_answer_tokens=4),
        description=f"{rated.criterion} of a response, as the mean over annotators.",
        citation=_PAPER,
        licence="as the set states",
        first="context",
        loss="squared_error",
        wordings=make_wordings(rated),
    )


def make_wordings(rated: RatedSet) -> tuple[Wording, ...]:
    """Return two prompt templates for a rated set, which mention its criterion and scale."""
    scale = f"from {rated.low:g} (worst) to {rated.high:g} (best)"
    return (
        Wording(
            "Rate how well the response continues the dialogue. The criterion is "
            f'"{rated.criterion}". The rating is a whole number {scale}.',
            "Response: {response}",
            "Rating:",
        ),
        Wording(
            "You judge the replies of dialogue systems.",
            "Reply: {response}\nHow good is this reply by the criterion "
            f'"{rated.criterion}", on a scale {scale}?',
            "Score:",
        ),
    )


def format_shared_task_name(name: str, dataset: str) -> str:
    """Return a dataset's own name for a task that both datasets have.

    The two names differ, because task names must be unique.
    """
    return f"tiny_{name}" if dataset == TINY else name


def list_cards(dataset: str) -> tuple[Task, ...]:
    """Return all task cards of a dataset."""
    domains = TINY_DOMAINS if dataset == TINY else DOMAINS
    return (
        *(make_pair_task(name, dataset, f"Whether a response fits, {name}.") for name in domains),
        make_pair_task(
            format_shared_task_name(LABELLER, dataset),
            dataset,
            "Whether a response fits, in DailyDialog++'s judgement.",
        ),
        make_pair_task(
            format_shared_task_name(GIVEN, dataset),
            dataset,
            "Probabilities that responses fit, of a model that is not here.",
            "closeness",
        ),
        make_pair_task(
            format_shared_task_name(EVERYTHING, dataset),
            dataset,
            "Whether a response fits, all domains together.",
        ),
        make_pair_task(
            format_shared_task_name(SELECTION, dataset),
            dataset,
            "Whether a response is the true one among candidates.",
        ),
        make_pair_task(
            format_shared_task_name(RATINGS, dataset),
            dataset,
            "Ratings of all sets, as shares of their scales.",
            "closeness",
        ),
        *(make_rated_task(one, dataset) for one in list_rated_sets(dataset).values()),
    )


def list_rated_sets(dataset: str) -> dict[str, RatedSet]:
    """Map the task names of a dataset to its rated sets."""
    return TINY_RATED if dataset == TINY else RATED
