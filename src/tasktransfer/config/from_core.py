"""Config sections whose keys have the types and defaults of a core type's fields.

These are ``models[].adapter``, an adapter that is trained instead of a model's weights, and
``training.fidelity``, a setting of ``core.fidelity`` and single switches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_type_hints

from pydantic import Field, create_model

from tasktransfer.config.fields import DISTINCT, LIST, NOT_EMPTY, NUMBER, Section
from tasktransfer.config.renamed_keys import get_new_name, restore_old_names
from tasktransfer.core.fidelity import FIDELITIES, Fidelity, Setting
from tasktransfer.core.specs import LowRank


class CoreKey(NamedTuple):
    """A key for a field of a core type.

    Attributes:
        description: text for the schema.
        markers: constraints on values other than None.
        kind: type of the key; None for the type of the field.
        default: default of the key; ``MISSING`` for the default of the field.
    """

    description: str
    markers: tuple[Any, ...] = ()
    kind: Any = None
    default: Any = MISSING


def define_section(
    name: str, path: str, base: type[Section], core: type, keys: Mapping[str, CoreKey]
) -> Any:
    """Create a config section with a base section's keys and a key per field of a core type.

    Args:
        name: name of the section in the schema.
        path: path of the section in config files, where ``renamed_keys`` may rename fields.
        base: section with the other keys, which come first, and with the docstring.
        core: dataclass with the fields.
        keys: name of the field → its key, in the order of the schema.
    """
    types = get_field_types(core)
    defaults = {each.name: each.default for each in fields(core)}
    definitions: dict[str, Any] = {
        get_new_name(field, path): (
            _add_markers(types[field] if key.kind is None else key.kind, key.markers),
            Field(
                default=defaults[field] if key.default is MISSING else key.default,
                description=key.description,
            ),
        )
        for field, key in keys.items()
    }
    return create_model(name, __base__=base, __doc__=base.__doc__, **definitions)


def get_field_types(core: type) -> dict[str, Any]:
    """Return the types of a dataclass's fields by name."""
    types = get_type_hints(core)
    return {each.name: types[each.name] for each in fields(core)}


def _add_markers(kind: Any, markers: tuple[Any, ...]) -> Any:
    """Return a type with constraints on all values except None."""
    if not markers:
        return kind
    if type(None) in get_args(kind):
        (kind,) = (each for each in get_args(kind) if each is not type(None))
        return Annotated[kind, *markers] | None
    return Annotated[kind, *markers]


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
        """The section as a ``core`` object."""
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


class _FidelityBase(Section):
    """A setting, and switches that differ from it."""

    setting: Setting = Field(
        default="default",
        description="predefined setting that provides the values of all switches not listed here",
    )


DESCRIPTIONS = {
    "scoring": "treatment of invalid labels, unanswerable texts and several gold answers in the "
    "metrics",
    "multi_label": "labels that encoders predict: labels with a sigmoid above 0.5, or with a "
    "softmax above 0.1",
    "backbone_dropout": "dropout inside the pretrained model; dropout before an encoder's head is "
    "always on",
    "head_start": "initialisation of encoders' new heads: N(0, 0.02) with fixed biases, or "
    "Xavier-uniform with torch's default biases",
    "batches_per_update": "number of separately sampled batches per update; batch_size is "
    "divided by this number",
    "leftover_batches": "use of batches at the end of an epoch that are too few for an update",
    "weighting_when_finetuning": "true to apply task_weighting also in fine-tuning after "
    "multitask training",
    "selection_metrics": "metrics whose mean selects the best round: the metrics in Table 1, or "
    "all metrics of the release",
    "several_answers": "gold answer to train on if there are several: the first, or one sampled "
    "per round",
    "lost_spans": "loss for encoders' answer spans that truncation removed: none, or the loss of "
    "the first token",
    "span_choice": "answer span of encoders: the best pair in the context, or the best start and "
    "the best end among all tokens, including padding",
    "inputs": "joining and truncation of context and query: our method, or the method of TLiDB",
    "answers": "generated labels: words that are compared without case; with tlidb, personality "
    "as 0 and 1, labels compared exactly, relations matched as substrings",
    "repetition_penalty": "divisor for the scores of tokens that were generated or, by decoders, "
    "read in the prompt",
    "generation_length": "maximum number of generated tokens: the length of the longest label, or "
    "the limits of TLiDB",
    "exp3_steps": "step count t of algorithm exp3, whose exploration decreases with t: the number "
    "of steps (FLAD's paper), or ten times that number plus one (FLAD's released code)",
}
"""Switch → its description. ``renamed_keys`` has the switches whose key has another name."""

_PATH = "training.fidelity"


def _define_switch(field: str, kind: Any) -> CoreKey:
    """Define a switch as a config key, whose default null means the value in the setting."""
    markers = (Field(gt=0, le=100), NUMBER) if kind is float else ()
    text = f"{DESCRIPTIONS[field]}; null to use the setting's value"
    return CoreKey(text, markers, kind=kind | None, default=None)


FidelityConfig: Any = define_section(
    "FidelityConfig",
    _PATH,
    _FidelityBase,
    Fidelity,
    {field: _define_switch(field, kind) for field, kind in get_field_types(Fidelity).items()},
)


def resolve_switches(value: Any) -> tuple[Setting, Fidelity]:
    """Return a config's setting, and the values of all switches under this setting."""
    if isinstance(value, str):
        return value, FIDELITIES[value]  # type: ignore[index,return-value]
    section = value.model_dump(exclude={"setting"}, exclude_none=True)
    switches = restore_old_names(section, _PATH)
    return value.setting, replace(FIDELITIES[value.setting], **switches)
