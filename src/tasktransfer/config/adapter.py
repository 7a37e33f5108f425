"""The section ``models[].adapter``: an adapter that is trained instead of a model's weights."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tasktransfer.config.fields import DISTINCT, LIST, NUMBER, Section
from tasktransfer.core.specs import AdapterStart, LowRank

ALL_LINEAR: Literal["all-linear"] = "all-linear"


class AdapterConfig(Section):
    """An adapter that is trained while the model's weights are frozen.

    Task heads are fully trained and saved with the adapter.
    """

    kind: Literal["lora"] = Field(
        default="lora",
        description=(
            "kind of adapter; lora: low-rank adapter (Hu et al. 2021), from the package peft"
        ),
    )
    rank: int = Field(default=16, ge=1, le=4096, description="rank of the low-rank update")
    alpha: Annotated[float, Field(gt=0, le=100_000), NUMBER] = Field(
        default=32.0, description="the update of the weights is multiplied by alpha / rank"
    )
    target_modules: (
        Literal["all-linear"] | Annotated[tuple[str, ...], LIST, Field(min_length=1), DISTINCT]
    ) = Field(
        default=ALL_LINEAR,
        description=(
            "layers that get an adapter, by the ends of their names; all-linear: all linear "
            "layers except the output layer"
        ),
    )
    dropout: Annotated[float, Field(ge=0, le=0.9), NUMBER] = Field(
        default=0.05, description="dropout rate that is applied to the adapter's input"
    )
    start: AdapterStart = Field(
        default="continue",
        description=(
            "what a run does with the adapter of the source run it starts from: train it further "
            "(continue), merge it into the weights and train a new one (merge), or train a new "
            "one in addition to it (stack)"
        ),
    )
    learning_rate: Annotated[float, Field(gt=0, le=1), NUMBER] | None = Field(
        default=None,
        description=(
            "learning rate of adapter and task heads; null for ten times training.learning_rate"
        ),
    )

    @property
    def spec(self) -> LowRank:
        """The section as a core spec."""
        every = self.target_modules == ALL_LINEAR
        return LowRank(
            rank=self.rank,
            alpha=self.alpha,
            target_modules=() if every else tuple(sorted(self.target_modules)),
            dropout=self.dropout,
            start=self.start,
            learning_rate=self.learning_rate,
        )
