"""The section ``models[].adapter``: what is trained in place of a model's own weights."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tasktransfer.config.fields import DISTINCT, LIST, NUMBER, Section
from tasktransfer.core.specs import AdapterStart, LowRank

ALL_LINEAR: Literal["all-linear"] = "all-linear"


class AdapterConfig(Section):
    """An adapter that is trained while the model's own weights stay; heads of tasks are trained
    whole and saved with it."""

    kind: Literal["lora"] = Field(
        default="lora", description="lora: of low rank (Hu et al. 2021), by the package peft"
    )
    rank: int = Field(default=16, ge=1, le=4096, description="of what is added to a layer")
    alpha: Annotated[float, Field(gt=0, le=100_000), NUMBER] = Field(
        default=32.0, description="what is added to a layer counts alpha / rank times"
    )
    target_modules: (
        Literal["all-linear"] | Annotated[tuple[str, ...], LIST, Field(min_length=1), DISTINCT]
    ) = Field(
        default=ALL_LINEAR,
        description="the layers that get one, by the ends of their names, or all-linear: all "
        "linear layers but the output layer",
    )
    dropout: Annotated[float, Field(ge=0, le=0.9), NUMBER] = Field(
        default=0.05, description="of what the adapter reads"
    )
    start: AdapterStart = Field(
        default="continue",
        description="a training that starts from another goes on training its adapter (continue), "
        "or trains a new one: on the weights that it is merged into (merge), or beside it (stack)",
    )
    learning_rate: Annotated[float, Field(gt=0, le=1), NUMBER] | None = Field(
        default=None, description="of the adapter and the heads; null: ten times the training's"
    )

    @property
    def spec(self) -> LowRank:
        """What a model's trainings are told of it."""
        every = self.target_modules == ALL_LINEAR
        return LowRank(
            rank=self.rank,
            alpha=self.alpha,
            target_modules=() if every else tuple(sorted(self.target_modules)),
            dropout=self.dropout,
            start=self.start,
            learning_rate=self.learning_rate,
        )
