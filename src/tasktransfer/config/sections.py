"""The sections that every design's config has. A key is declared here once: its type, its default
and its description. To add one, add it to its section's class, with a comment to
``config.yaml``, and with another value than its default to ``tests/contract/every_key_studies.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from tasktransfer.config.adapter import AdapterConfig
from tasktransfer.config.fields import (
    DISTINCT,
    LIST,
    NUMBER,
    Checkpoint,
    Folder,
    KeyVariable,
    ModelName,
    Revision,
    Section,
    Seed,
    Seeds,
    Title,
    Url,
    UserPath,
)
from tasktransfer.config.places import for_results, is_gguf, may_be_on_the_hub
from tasktransfer.config.training import TrainingConfig
from tasktransfer.core.digests import digest_of
from tasktransfer.core.specs import FAMILIES, Family
from tasktransfer.core.validation import Problem, refuse, unknown

TINY_WORLD = "tiny_world"
TINY = "tiny"
BUILT = "built"
ALL: Literal["all"] = "all"


class TinyWorldConfig(Section):
    """What the tiny world is generated from."""

    seed: Seed = Field(default=0, description="seed of the generator")
    dialogues: int = Field(default=240, ge=120, le=100_000, description="dialogues per dataset")


class ArchitectureConfig(Section):
    """A Transformer that is built here, its weights drawn from the training's seed: post-norm
    layers, ReLU, sines for positions, one embedding for all that reads and writes words."""

    layers: int = Field(default=4, ge=1, le=100, description="layers of an encoder")
    decoder_layers: int = Field(default=4, ge=1, le=100, description="layers of the decoder")
    hidden: int = Field(default=300, ge=8, le=8192, description="width of a layer")
    heads: int = Field(default=6, ge=1, le=128, description="attention heads")
    feed_forward: int = Field(default=1200, ge=8, le=65_536, description="width inside a layer")
    positions: int = Field(default=1000, ge=16, le=100_000, description="longest input that fits")
    words: int = Field(
        default=250_000,
        ge=10,
        le=10_000_000,
        description="most frequent words of the training texts",
    )
    vectors: UserPath | None = Field(
        default=None, description="text file of word vectors that words start from; null: none"
    )

    @field_validator("heads")
    @classmethod
    def _divides(cls, heads: int, info: ValidationInfo) -> int:
        hidden = info.data.get("hidden", heads)
        if hidden % heads:
            raise ValueError(f"found {heads}, which does not divide hidden ({hidden}): change one")
        return heads


class DataConfig(Section):
    """Which dialogues are studied."""

    release: UserPath = Field(
        default=TINY_WORLD,
        description="tiny_world, or the folder that holds TLiDB_<Set>/ or TLiDB_<Set>.zip",
    )
    few_sample: bool = Field(default=True, description="the benchmark's 10 % of train and dev")
    tiny_world: TinyWorldConfig = Field(
        default=TinyWorldConfig(), description="how the built-in tiny world is generated"
    )

    def release_of(self, dataset: str) -> str:
        """Where the release of a dataset is looked for."""
        return self.release

    def generates(self, dataset: str) -> bool:
        """Whether the study generates the dialogues of a dataset itself."""
        return self.generated

    @property
    def generated(self) -> bool:
        """Whether the study generates its dialogues itself. Those of a folder may be generated too:
        that is for the release's metadata to say (``data.prepared``)."""
        return self.release == TINY_WORLD


class WholeData(DataConfig):
    """Which dialogues are studied, by a design whose datasets have no few-sample setting."""

    few_sample: bool = Field(default=False, description="of no use here: there is no such setting")

    @field_validator("few_sample")
    @classmethod
    def _of_no_use(cls, few_sample: bool) -> bool:
        if few_sample:
            raise ValueError(
                "found true, and no dataset of this design has a few-sample setting: remove it, "
                "and cut with training.limit_train"
            )
        return few_sample


class ModelConfig(Section):
    """A model as the config names it; ``study`` finds out what its weights are."""

    name: ModelName = Field(description="what tables, figures and paths call the model")
    family: Family = Field(
        description="encoder, decoder or encoder_decoder",
        json_schema_extra={"enum": list(FAMILIES)},
    )
    checkpoint: Checkpoint = Field(
        description="'tiny' (built in), a local folder (./path), a file in GGUF (./path.gguf) or a "
        "name on the Hugging Face hub"
    )
    revision: Revision | None = Field(
        default=None, description="branch, tag or commit of a hub name; null means main"
    )
    max_length: int = Field(default=512, ge=16, le=1_000_000, description="longest input in tokens")
    # A check of the tokenizer: it changes no number, and so no digest.
    max_unknown_words: Annotated[float, Field(ge=0, le=1), NUMBER] = Field(
        default=0.05,
        exclude=True,
        description="the largest share of the study's words that its tokenizer may not know",
    )
    adapter: AdapterConfig | None = Field(
        default=None,
        description="what is trained in place of the model's weights; null: they are trained",
    )

    families: ClassVar[tuple[Family, ...]] = FAMILIES
    """Those that models of the design have."""
    may_be_built: ClassVar[bool] = False
    """Whether the design says what a model of checkpoint ``built`` is made of."""
    may_be_adapted: ClassVar[bool] = True
    """Whether the design trains adapters in place of a model's weights."""

    @field_validator("checkpoint")
    @classmethod
    def _can_be_built(cls, checkpoint: str) -> str:
        if checkpoint == BUILT and not cls.may_be_built:
            raise ValueError(f"{BUILT!r}: this design builds no such model: name a checkpoint")
        return checkpoint

    @field_validator("adapter")
    @classmethod
    def _can_be_adapted(
        cls, adapter: AdapterConfig | None, info: ValidationInfo
    ) -> AdapterConfig | None:
        if adapter is not None and not cls.may_be_adapted:
            raise ValueError("this design trains its models another way: remove it")
        if adapter is not None and info.data.get("checkpoint") == BUILT:
            raise ValueError(
                "an adapter leaves the model's own weights as they are, and those of a built model "
                "are drawn: remove it, or name a checkpoint"
            )
        return adapter

    @field_validator("family")
    @classmethod
    def _of_the_design(cls, family: Family) -> Family:
        if family not in cls.families:
            raise ValueError(unknown("family", family, cls.families))
        return family

    @property
    def recipe(self) -> str | None:
        """What the model is built from, where it is none of a checkpoint; the weights' name."""
        return None

    @property
    def is_made(self) -> bool:
        """Whether the study makes the model's folder: by pre-training, from an architecture, or by
        dequantising a file."""
        return self.checkpoint in (TINY, BUILT) or is_gguf(self.checkpoint)

    @property
    def has_checkpoint(self) -> bool:
        """Whether its weights come from elsewhere, and have to be checked before they are used."""
        return self.recipe is None and self.checkpoint not in (TINY, BUILT)

    @property
    def is_only_prompted(self) -> bool:
        """Whether the study prompts the model as it was released, and does not train it."""
        return False

    @property
    def loaded_as(self) -> Family:
        """The family of its checkpoint: a dual encoder begins as two copies of an encoder."""
        return "encoder" if self.family == "dual_encoder" else self.family

    @property
    def built(self) -> ArchitectureConfig | None:
        """The Transformer that a folder is made of, whose weights a training draws; None: none."""
        return None

    @property
    def second(self) -> str | None:
        """The model of the study whose encoder reads beside this one; None: none does."""
        return None

    @field_validator("revision")
    @classmethod
    def _of_the_hub(cls, revision: str | None, info: ValidationInfo) -> str | None:
        checkpoint = info.data.get("checkpoint")
        if revision is None or checkpoint is None:
            return revision
        if checkpoint in (TINY, BUILT) or not may_be_on_the_hub(checkpoint):
            raise ValueError(
                f"found {revision!r}, but only hub names have revisions and the checkpoint is "
                f"{checkpoint!r}: remove it"
            )
        return revision


class EndpointConfig(Section):
    """Where a language model is prompted that runs elsewhere, by OpenAI's protocol. Only ``served``
    changes numbers."""

    endpoint: Url | None = Field(
        default=None,
        description="address of an OpenAI-compatible API, such as http://localhost:8000/v1, where "
        "the model runs; null: it is one of models, and runs here",
    )
    served: Title | None = Field(
        default=None, description="what the endpoint calls the model; null: as `model` does"
    )
    key_variable: KeyVariable | None = Field(
        default="OPENAI_API_KEY",
        description="environment variable that holds the key, which nothing else ever has; its "
        "name ends in _API_KEY and is listed in TASKTRANSFER_KEY_VARIABLES (OPENAI_API_KEY need "
        "not be for this machine and api.openai.com); null: no key is sent",
    )
    concurrency: int = Field(default=4, ge=1, le=1000, description="requests at a time")
    retries: int = Field(
        default=6, ge=0, le=100, description="how often a request is sent once more that failed"
    )
    timeout: Annotated[float, Field(gt=0, le=86_400), NUMBER] = Field(
        default=120.0, description="seconds that a request with its whole answer may take"
    )


class CheckpointConfig(Section):
    """What stays on disk beside records and predictions."""

    keep: Literal["all"] | Annotated[tuple[str, ...], LIST, DISTINCT] = Field(
        default=(), description="kinds of stages whose checkpoints stay on disk, or all"
    )

    @field_validator("keep")
    @classmethod
    def _of_the_design(cls, keep: Any, info: ValidationInfo) -> Any:
        kinds = (info.context or {}).get("kinds")
        if kinds is not None and keep != ALL:
            strange = [(index, kind) for index, kind in enumerate(keep) if kind not in kinds]
            refuse((f"[{i}]", unknown("kind of stage", kind, kinds)) for i, kind in strange)
        return keep


def named_once(models: tuple[ModelConfig, ...]) -> tuple[ModelConfig, ...]:
    first: dict[str, int] = {}
    repeated = []
    for index, model in enumerate(models):
        # Without case: the names are folders, and some file systems do not tell them apart.
        earlier = first.setdefault(model.name.casefold(), index)
        if earlier != index:
            message = f"{model.name!r} names models[{earlier}] already: give each its own name"
            repeated.append((f"[{index}].name", message))
    refuse(repeated)
    return models


class CommonConfig(Section):
    """What a study of any design says. A design's own config adds its keys."""

    study: Title = Field(description="the study's name, shown in titles and records")
    results: Annotated[Folder, AfterValidator(for_results)] = Field(
        default="results", description="folder of all results"
    )
    design: Title = Field(
        default="transfer",
        description="what is studied: which trainings, tables and figures there are",
    )
    plugins: Annotated[tuple[UserPath, ...], LIST, DISTINCT] = Field(
        default=(), description="Python files or packages (folders) that add datasets or a design"
    )
    data: DataConfig = Field(default=DataConfig(), description="which dialogues are studied")
    models: Annotated[
        tuple[ModelConfig, ...], LIST, Field(min_length=1), AfterValidator(named_once)
    ] = Field(description="the models, each a checkpoint with its family")
    seeds: Seeds = Field(default=(0,), description="a list of seeds, or n for 0 to n-1")
    training: TrainingConfig = Field(default=TrainingConfig(), description="hyperparameters")
    checkpoints: CheckpointConfig = Field(
        default=CheckpointConfig(), description="what stays on disk beside records and predictions"
    )

    @field_validator("*")
    @classmethod
    def _keep(cls, part: Any, info: ValidationInfo) -> Any:
        """Hand on the parts that are right, for ``contradictions`` of a config that is not."""
        if info.context is not None:
            info.context["parts"][info.field_name] = part
        return part

    @classmethod
    def contradictions(cls, parts: Mapping[str, Any]) -> Iterator[Problem]:
        """What does not fit together; of the common parts nothing.

        Args:
            parts: key → validated part, without those that have problems: so one slip gives one
                message.
        """
        yield from ()

    @classmethod
    def forbidden(cls, document: Any) -> Mapping[str, str]:
        """Key path → message, for keys that this study may not have though another may. Told
        instead of anything else about the same keys."""
        return {}

    @property
    def dataset_names(self) -> tuple[str, ...]:
        """The datasets that are studied; a design's config says which."""
        return ()

    @property
    def needs_model_sizes(self) -> bool:
        """Whether hyperparameters depend on the number of a model's parameters."""
        return False

    @property
    def files_read(self) -> Mapping[str, str]:
        """Files that only tables and figures read, by the key that names them."""
        return {}

    @property
    def endpoints(self) -> Mapping[str, EndpointConfig]:
        """Where the models are prompted that this study does not run, by their names."""
        return {}

    def how_to_leave_out(self, dataset: str, task: str) -> str:
        """What to change so that a task of a dataset is not read, for messages."""
        content = self.model_dump()
        for name in (task, dataset):
            if keys := dict.fromkeys(_keys(content, name)):
                return f"remove {name!r} from {', '.join(keys)}"
        return f"leave out what reads {task!r}"

    def vocabulary_of(self, model: str) -> tuple[str, ...]:
        """The datasets whose training texts give a built model its words: those that it is trained
        on, so that what else is studied changes no model."""
        return self.dataset_names

    @property
    def known_labels(self) -> tuple[str, ...]:
        """Labels whose words a built model has besides."""
        return ()

    @property
    def digest(self) -> str:
        """SHA-256 of the whole study as asked for, for the records' provenance."""
        return digest_of(self.content())

    def content(self) -> dict[str, Any]:
        """What the digest is taken of. Keys that came later are left out at their default, so that
        older studies keep their digests."""
        content = self.model_dump()
        for key in ("design", "plugins"):
            if content[key] == type(self).model_fields[key].default:
                del content[key]
        training = type(self.training)
        for key in training.later:
            if content["training"][key] == training.model_fields[key].default:
                del content["training"][key]
        for model in content["models"]:
            for key in ("architecture", "beside", "adapter"):
                if model.get(key, "") is None:
                    del model[key]
        return content


def _keys(value: Any, name: str, key: str = "") -> Iterator[str]:
    """The keys under which something is named in plain values."""
    if isinstance(value, Mapping):
        for inner, item in value.items():
            yield from _keys(item, name, f"{key}.{inner}" if key else str(inner))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _keys(item, name, key)
    elif value == name:
        yield key
