"""The config of a probe study: common keys, corpora, built models, and probes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from tasktransfer.config import ALL, CommonConfig, ModelConfig, TrainingConfig, WholeData
from tasktransfer.config.fields import (
    DISTINCT,
    LIST,
    NOT_EMPTY,
    NUMBER,
    Checkpoint,
    Count,
    Epochs,
    Section,
    UserPath,
)
from tasktransfer.config.model_sizes import find_layer_count
from tasktransfer.config.models import check_unique_names
from tasktransfer.config.renamed_keys import restore_old_names
from tasktransfer.config.training import ONLY_IN_TRANSFER, TRANSFER_SWITCHES
from tasktransfer.core.architecture import Architecture, ArchitectureKind
from tasktransfer.core.validation import Problem, describe_unknown, raise_problems
from tasktransfer.designs.probes.facts import (
    CONTROL,
    EVERY,
    NAMES,
    Probe,
    format_reply_task_name,
)
from tasktransfer.errors import describe_wrong_value
from tasktransfer.results.study import Study

BUILT = "recipe"
"""Value of ``checkpoint`` for a model that is built from an architecture."""

Layer = Annotated[int, Field(ge=0, le=1000)]
Snapshot = Literal["untrained", "best", "last"] | Annotated[int, Field(ge=0)]


class ArchitectureConfig(Section):
    """An encoder-decoder to build (section 4.2, Appendix A); defaults to the paper's LSTM."""

    kind: ArchitectureKind = Field(
        description="kind of network: lstm, lstm_attention, bilstm_attention, hred or transformer"
    )
    embedding: int = Field(default=128, ge=1, le=8192, description="width of word embeddings")
    units: int = Field(default=256, ge=1, le=8192, description="width of hidden states")
    layers: int = Field(
        default=2,
        ge=1,
        le=100,
        description="number of layers in the encoder, and also in the decoder",
    )
    heads: int = Field(
        default=2, ge=1, le=128, description="number of attention heads of a Transformer"
    )
    feed_forward: int = Field(
        default=2048, ge=1, le=65_536, description="feed-forward width of a Transformer"
    )
    dropout: Annotated[float, Field(ge=0, le=0.9), NUMBER] = Field(
        default=0.0, description="dropout rate of a Transformer"
    )
    min_count: Count = Field(
        default=3,
        description=(
            "minimum number of occurrences in the training data for a word to enter the vocabulary"
        ),
    )

    @model_validator(mode="after")
    def _check_transformer(self) -> ArchitectureConfig:
        if self.kind == "transformer":
            if self.embedding != self.units:
                problem = f"The value is {self.embedding}, but units is {self.units}."
                raise_problems([(".embedding", f"{problem} Give both keys the same value.")])
            if self.units % (2 * self.heads):
                multiple = f"a multiple of {2 * self.heads}, twice the number of heads"
                raise_problems([(".units", describe_wrong_value(self.units, multiple))])
        return self

    @property
    def built(self) -> Architecture:
        """Architecture that these settings describe."""
        return Architecture(**restore_old_names(self.model_dump(), "models[].architecture"))


class ProbedModel(ModelConfig):
    """A built model that is trained on the next utterance, or a checkpoint probed as released."""

    checkpoint: Checkpoint = Field(
        default=BUILT,
        description=(
            "local folder (./path) or name on the Hugging Face hub; for a model without an "
            "architecture"
        ),
    )
    architecture: ArchitectureConfig | None = Field(
        default=None,
        description=(
            "architecture of a model that the study builds and trains; null to probe the "
            "pretrained checkpoint"
        ),
    )

    layers: Literal["all"] | Annotated[tuple[Layer, ...], LIST, NOT_EMPTY, DISTINCT] | None = Field(
        default=None,
        description=(
            "layers of a checkpoint that are probed: numbers from 0 (the input embeddings), or "
            "all; null to probe the last layer"
        ),
    )
    pooling: Literal["mean", "first", "last"] = Field(
        default="mean",
        description=(
            "representation of a text by a checkpoint: the mean over the tokens, or the first or "
            "last token"
        ),
    )

    may_be_adapted: ClassVar[bool] = False

    @model_validator(mode="after")
    def _check_architecture(self) -> ProbedModel:
        if (self.architecture is None) == (self.checkpoint == BUILT):
            problem = "A model needs either an architecture or a checkpoint."
            raise_problems([(".checkpoint", f"{problem} Set exactly one of the two keys.")])
        if self.architecture is not None and self.family != "encoder_decoder":
            problem = f"The family is {self.family!r}, but an architecture is an encoder_decoder."
            raise_problems(
                [
                    (
                        ".family",
                        f"{problem} Set family to encoder_decoder, or replace the architecture by "
                        "a checkpoint.",
                    )
                ]
            )
        if self.architecture is not None and self.revision is not None:
            problem = f"The value is {self.revision!r}, but only models on the hub have revisions."
            raise_problems([(".revision", f"{problem} Remove the key.")])
        return self

    @model_validator(mode="after")
    def _check_layers(self) -> ProbedModel:
        if self.architecture is not None:
            given = self.model_fields_set & {"layers", "pooling"}
            message = "Only a model with a checkpoint can have this key. Remove it."
            raise_problems([(f".{key}", message) for key in sorted(given)])
        if self.pooling == "first" and self.family == "decoder":
            problem = "The value is 'first', but a decoder's first token does not see the others."
            raise_problems([(".pooling", f"{problem} Write last or mean.")])
        depth = self.depth if self.layers is not None else None
        if self.layers == ALL and depth is None:
            message = (
                f"The number of layers of {self.checkpoint} is unknown, because it has no readable "
                "config.json on this disk. List the layers, such as [0, 6, 12]."
            )
            raise_problems([(".layers", message)])
        if self.layers is not None and self.layers != ALL and depth is not None:
            problem = f"but {self.checkpoint} has layers 0 to {depth}. Choose one of these layers."
            places = [(n, layer) for n, layer in enumerate(self.layers) if layer > depth]
            raise_problems(
                [(f".layers[{n}]", f"The value is {layer}, {problem}") for n, layer in places]
            )
        return self

    @property
    def depth(self) -> int | None:
        """Number of layers of the checkpoint's encoder or decoder, or None if unknown."""
        return find_layer_count(self.checkpoint, self.family, self.revision or "main")

    @property
    def probed_layers(self) -> tuple[int, ...]:
        """Layers to probe, in ascending order, or an empty tuple to probe only the last layer."""
        if self.layers == ALL:
            return tuple(range((self.depth or 0) + 1))
        return tuple(sorted(self.layers or ()))

    @property
    def recipe(self) -> str | None:
        """Name of the recipe that builds the model, or None if it is a checkpoint."""
        return None if self.architecture is None else self.architecture.built.weights


class ProbesTraining(TrainingConfig):
    """Hyperparameters of training on the next utterance."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "task_weighting": "Remove the key, because no training mixes batches of several tasks",
        "loss_on": "Remove the key, because no decoder is trained",
        "head_learning_rate": "Remove the key, because the models have no task heads",
        "gradient_checkpointing": "Remove the key, because the models do not use transformers",
        "fidelity.scoring": "Remove the key, because there is one way to compute BLEU",
        "fidelity.backbone_dropout": "Set models[].architecture.dropout",
        "fidelity.head_init": "Remove the key, because the models have no task heads",
        "fidelity.selection_metrics": "Remove the key, because BLEU selects the best round",
        "fidelity.repetition_penalty": "Remove the key, because built models generate without one",
        "fidelity.weighting_when_finetuning": "Remove the key, because no fine-tuning follows a "
        "training on several tasks",
        **dict.fromkeys(TRANSFER_SWITCHES, ONLY_IN_TRANSFER),
    }

    epochs: Epochs = Field(default=25, description="number of epochs")


class ProbesSection(Section):
    """Probes and their settings."""

    tasks: Literal["all"] | Annotated[tuple[str, ...], LIST, NOT_EMPTY, DISTINCT] = Field(
        default=ALL, description="names of the probes, or all for the probes in Table 1"
    )
    control: bool = Field(
        default=False,
        description=("true to probe also a random label that the dialogue never mentions"),
    )
    snapshots: Literal["all"] | Annotated[tuple[Snapshot, ...], LIST, NOT_EMPTY, DISTINCT] = Field(
        default=("untrained", "best", "last"),
        description=("epochs whose snapshots are probed: untrained, best, last, numbers, or all"),
    )
    release_compat: bool = Field(
        default=False,
        description=(
            "true to follow the released code, which sums the last states, fits all probes "
            "one-vs-rest, and selects snapshots by BLEU-2 with hypothesis and reference exchanged"
        ),
    )
    C: Annotated[float, Field(gt=0), NUMBER] = Field(
        default=1.0, description="inverse of the regularization strength (C in scikit-learn)"
    )
    max_iter: int = Field(
        default=250, ge=1, le=100_000, description="maximum number of iterations to fit a probe"
    )
    mlp: bool = Field(
        default=False, description=("true to fit also a multilayer perceptron as a probe")
    )
    bag_of_words: bool = Field(
        default=True, description=("true to fit the probes also on word counts")
    )
    limit_train: Count | None = Field(
        default=None,
        description=("maximum number of training turns per probe; null to use all turns"),
    )
    word_vectors: UserPath | None = Field(
        default=None,
        description=(
            "text file of word vectors, with a word and its numbers per line, or the folder of "
            "an encoder whose input embeddings are used. If vectors are given, snapshots are "
            "also selected by vector measures. Set the key to null to use no vectors"
        ),
    )
    human_judgements: UserPath | None = Field(
        default=None,
        description=(
            "CSV file of human judgements for the figure of the percentage of ties, in which the "
            "column `choice` contains tie for a tie; null to use synthetic judgements"
        ),
    )
    wordcont_text: Literal["context", "target"] = Field(
        default="context", description="text in which the probe WordCont searches for a word"
    )

    @property
    def representation(self) -> str:
        """Kind of text representation that built models use."""
        return "sum" if self.release_compat else "state"

    @property
    def measure(self) -> str:
        """Dev measure that selects a snapshot."""
        return "bleu2_exchanged" if self.release_compat else "bleu2"


class ProbesConfig(CommonConfig):
    """A study of what encoders know about dialogues."""

    data: WholeData = Field(
        default=WholeData(), description="dialogues of the study and where they are stored"
    )
    corpora: Annotated[
        tuple[Literal["MultiWOZ", "PersonaChat"], ...], LIST, DISTINCT, Field(min_length=1)
    ] = Field(
        default=("MultiWOZ", "PersonaChat"),
        description="corpora of the study: MultiWOZ and PersonaChat",
    )
    models: Annotated[
        tuple[ProbedModel, ...], LIST, Field(min_length=1), AfterValidator(check_unique_names)
    ] = Field(description="models of the study, each with an architecture to build or a checkpoint")
    training: ProbesTraining = Field(default=ProbesTraining(), description="hyperparameters")
    probes: ProbesSection = Field(
        default=ProbesSection(), description="probes to run and their settings"
    )

    @property
    def dataset_names(self) -> tuple[str, ...]:
        return self.corpora

    @property
    def analysis_files(self) -> Mapping[str, str]:
        named = {key: getattr(self.probes, key) for key in ("word_vectors", "human_judgements")}
        return {f"probes.{key}": path for key, path in named.items() if path is not None}

    @classmethod
    def find_contradictions(cls, parts: Mapping[str, Any]) -> Iterator[Problem]:
        yield from super().find_contradictions(parts)
        probes, training = parts.get("probes"), parts.get("training")
        if probes is None:
            return

        for index, name in enumerate(probes.tasks if probes.tasks != ALL else ()):
            where = [probe.corpus for probe in EVERY if probe.name == name]
            if not where:
                yield Problem(f"probes.tasks[{index}]", describe_unknown("probe", name, NAMES))
            elif "corpora" in parts and not {*where} & {*parts["corpora"]}:
                problem = f"{name!r} is a probe of {where[0]}, which is not in corpora."
                remedy = f"Add {where[0]} to corpora, or remove the probe."
                yield Problem(f"probes.tasks[{index}]", f"{problem} {remedy}")
        for index, corpus in enumerate(parts.get("corpora", ()) if probes.tasks != ALL else ()):
            names = [probe.name for probe in EVERY if probe.corpus == corpus]
            if not {*names} & {*probes.tasks}:
                remedy = f"Add one of {', '.join(names)}, or remove the corpus."
                problem = f"probes.tasks contains no probe of {corpus}. {remedy}"
                yield Problem(f"corpora[{index}]", problem)
        for index, snapshot in enumerate(probes.snapshots if probes.snapshots != ALL else ()):
            if training and isinstance(snapshot, int) and snapshot > training.epochs:
                yield Problem(
                    f"probes.snapshots[{index}]",
                    f"The value is {snapshot}, but training.epochs is {training.epochs}. Choose a "
                    "smaller number.",
                )

    def select_probes(self, corpus: str) -> tuple[Probe, ...]:
        """Return the study's probes for a corpus, in the order of Table 1."""
        wanted = NAMES if self.probes.tasks == ALL else self.probes.tasks
        return tuple(
            probe
            for probe in EVERY
            if probe.corpus == corpus
            and probe.name in wanted
            and (probe.name != CONTROL or self.probes.control or self.probes.tasks != ALL)
        )


def get_config(study: Study) -> ProbesConfig:
    """Return the config of a study of this design."""
    assert isinstance(study.config, ProbesConfig)
    return study.config


__all__ = ["ProbesConfig", "format_reply_task_name", "get_config"]
