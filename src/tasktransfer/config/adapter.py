"""The section ``models[].adapter``: an adapter that is trained instead of a model's weights."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from tasktransfer.config.fields import DISTINCT, LIST, NOT_EMPTY, NUMBER, Section
from tasktransfer.config.from_core import CoreKey, define_section
from tasktransfer.core.specs import LowRank

ALL_LINEAR: Literal["all-linear"] = "all-linear"


class _Adapter(Section):
    """An adapter that is trained while the model's weights are frozen.

    Task heads are fully trained and saved with the adapter.
    """

    kind: Literal["lora"] = Field(
        default="lora",
        description=(
            "kind of adapter: lora is a low-rank adapter (Hu et al. 2021) from the package peft"
        ),
    )

    @property
    def spec(self) -> LowRank:
        """The section as a core spec."""
        values = self.model_dump(exclude={"kind"})
        named = values.pop("target_modules")
        return LowRank(**values, target_modules=() if named == ALL_LINEAR else (*sorted(named),))


AdapterConfig: Any = define_section(
    "AdapterConfig",
    "models[].adapter",
    _Adapter,
    LowRank,
    {
        "rank": CoreKey("rank of the low-rank update", (Field(ge=1, le=4096),)),
        "alpha": CoreKey(
            "scale of the low-rank update, which is multiplied by alpha / rank",
            (Field(gt=0, le=100_000), NUMBER),
        ),
        "target_modules": CoreKey(
            "ends of the names of layers with an adapter; all-linear for all linear layers "
            "except the output layer",
            kind=Literal["all-linear"] | Annotated[tuple[str, ...], LIST, NOT_EMPTY, DISTINCT],
            default=ALL_LINEAR,
        ),
        "dropout": CoreKey(
            "dropout rate that is applied to the adapter's input", (Field(ge=0, le=0.9), NUMBER)
        ),
        "start": CoreKey(
            "treatment of the source run's adapter: continue to train this adapter further, merge "
            "to merge it into the weights and train a new adapter, or stack to train an "
            "additional adapter"
        ),
        "learning_rate": CoreKey(
            "learning rate of adapter and task heads; null to use ten times training.learning_rate",
            (Field(gt=0, le=1), NUMBER),
        ),
    },
)
