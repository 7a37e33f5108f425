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
        """Mean log-probability of the choice's tokens (Brown et al. 2020, section 2.4)."""
        return self.total / self.tokens if self.tokens else float("-inf")


@dataclass(frozen=True, slots=True)
class Unread:
    """A prompt without a readable answer, which counts as wrong."""

    reason: str


class PromptedModel(Protocol):
    """A language model that answers prompts."""

    @property
    def max_length(self) -> int:
        """Maximum length of prompt and answer in tokens."""
        ...

    @property
    def gives_likelihoods(self) -> bool:
        """True if the model can score choices, and not only generate."""
        ...

    def list_notes(self, *, chooses: bool) -> list[str]:
        """Return notes for the record on how the model was prompted.

        Args:
            chooses: whether answers are choices.
        """
        ...

    def count_tokens(self, prompt: Prompt) -> int:
        """Count the tokens of a prompt, or estimate their number without a tokenizer."""
        ...

    def truncate_text(self, text: str, most: int, keeps: str) -> str:
        """Truncate a text to at most ``most`` tokens.

        Args:
            keeps: part of the text that is kept: ``end``, ``beginning`` or ``both`` ends.
        """
        ...

    def compute_likelihoods(
        self, asked: Sequence[InstancePrompt]
    ) -> Sequence[list[Likelihood] | Unread]:
        """Compute the likelihood of each choice after its prompt, for each prompt."""
        ...

    def generate(
        self, prompts: Sequence[Prompt], most: int, stops: Sequence[str]
    ) -> Sequence[str | Unread]:
        """Generate the answer to each prompt greedily.

        An answer ends after ``most`` tokens or at the first stop string.
        """
        ...

    def get_counts(self) -> dict[str, float]:
        """Return counts by name, such as requests and tokens so far."""
        ...


def truncate_at_stop(text: str, stops: Sequence[str]) -> str:
    """Truncate a generated text at the first stop string, and strip leading white space."""
    text = text.lstrip()
    for stop in stops:
        text = text.split(stop, 1)[0]
    return text


def has_stopped(text: str, stops: Sequence[str]) -> bool:
    """Return whether a generated text contains a stop string."""
    return any(stop in text.lstrip() for stop in stops)
