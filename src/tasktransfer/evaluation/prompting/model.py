"""What is asked of a language model that is not trained, wherever it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from tasktransfer.tasks.asking import Asked, Prompt

Chat = Literal["auto", "yes", "no"]
"""Whether prompts are put as turns of a chat; ``auto``: where the model has a template for it."""


@dataclass(frozen=True, slots=True)
class Likelihood:
    """Of a choice behind its prompt: the log-probability of all its tokens in nats, and how many
    they are."""

    total: float
    tokens: int

    @property
    def mean(self) -> float:
        """By length: the mean over tokens (Brown et al. 2020, section 2.4)."""
        return self.total / self.tokens if self.tokens else float("-inf")


@dataclass(frozen=True, slots=True)
class Unread:
    """A question without an answer that can be read; it counts as wrong."""

    reason: str


class AskedModel(Protocol):
    """A language model that answers prompts."""

    @property
    def max_length(self) -> int:
        """Tokens of prompt and answer."""
        ...

    @property
    def gives_likelihoods(self) -> bool:
        """Whether it says how likely a choice is; otherwise it can only write."""
        ...

    def notes(self, *, chooses: bool) -> list[str]:
        """Return what a record should note about how the model was asked.

        Args:
            chooses: whether answers are choices.
        """
        ...

    def length(self, prompt: Prompt) -> int:
        """Tokens of a prompt; of a model whose tokenizer is not here an estimate."""
        ...

    def cut(self, text: str, most: int, keeps: str) -> str:
        """At most so many tokens of a text: of its ``end`` or ``beginning``."""
        ...

    def likelihoods(self, asked: Sequence[Asked]) -> Sequence[list[Likelihood] | Unread]:
        """How likely each choice of each question is behind its prompt."""
        ...

    def write(
        self, prompts: Sequence[Prompt], most: int, stops: Sequence[str]
    ) -> Sequence[str | Unread]:
        """What it writes behind each prompt, always the likeliest token: at most so many tokens, up
        to the first of the stops."""
        ...

    def counts(self) -> dict[str, float]:
        """What asking has come to so far, by name: tokens read and written, requests."""
        ...


def up_to(text: str, stops: Sequence[str]) -> str:
    """A written text up to the first of the stops, white space before its beginning left out."""
    text = text.lstrip()
    for stop in stops:
        text = text.split(stop, 1)[0]
    return text


def has_stopped(text: str, stops: Sequence[str]) -> bool:
    """Whether a text that is being written has come to one of the stops."""
    return any(stop in text.lstrip() for stop in stops)
