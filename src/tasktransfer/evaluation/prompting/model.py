"""The interface of a prompted language model, in this process or behind an endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from tasktransfer.tasks.asking import InstancePrompt, Prompt

Chat = Literal["auto", "yes", "no"]
"""Use of chat turns in prompts; ``auto`` uses them if the model has a chat template."""


@dataclass(frozen=True, slots=True)
class Likelihood:
    """The likelihood of a choice after its prompt.

    Attributes:
        total: summed log-probability of its tokens in nats.
        tokens: number of its tokens.
    """

    total: float
    tokens: int

    @property
    def mean(self) -> float:
        """The mean log-probability of its tokens (Brown et al. 2020, section 2.4)."""
        return self.total / self.tokens if self.tokens else float("-inf")


@dataclass(frozen=True, slots=True)
class Unread:
    """A prompt without a readable answer, which counts as wrong."""

    reason: str


class PromptedModel(Protocol):
    """A language model that answers prompts."""

    @property
    def max_length(self) -> int:
        """The maximum length of prompt and answer in tokens."""
        ...

    @property
    def gives_likelihoods(self) -> bool:
        """True if the model can score choices. Otherwise it can only generate."""
        ...

    def list_notes(self, *, chooses: bool) -> list[str]:
        """Return notes for the record about how the model was prompted.

        Args:
            chooses: whether answers are choices.
        """
        ...

    def count_tokens(self, prompt: Prompt) -> int:
        """Return the number of tokens in a prompt, estimated if there is no tokenizer."""
        ...

    def truncate_text(self, text: str, most: int, keeps: str) -> str:
        """Return a part of a text that has at most ``most`` tokens.

        Args:
            keeps: part of the text that is kept: ``end``, ``beginning`` or ``both`` ends.
        """
        ...

    def compute_likelihoods(
        self, asked: Sequence[InstancePrompt]
    ) -> Sequence[list[Likelihood] | Unread]:
        """Return the likelihood of each choice after its prompt, for each prompt."""
        ...

    def generate(
        self, prompts: Sequence[Prompt], most: int, stops: Sequence[str]
    ) -> Sequence[str | Unread]:
        """Return the greedily generated answer to each prompt.

        An answer ends after ``most`` tokens or at the first stop string.
        """
        ...

    def get_counts(self) -> dict[str, float]:
        """Return counts by name, such as the tokens read and generated so far, and the requests."""
        ...


def truncate_at_stop(text: str, stops: Sequence[str]) -> str:
    """Return a generated text up to the first stop string, without leading white space."""
    text = text.lstrip()
    for stop in stops:
        text = text.split(stop, 1)[0]
    return text


def has_stopped(text: str, stops: Sequence[str]) -> bool:
    """Return whether a generated text contains a stop string."""
    return any(stop in text.lstrip() for stop in stops)
