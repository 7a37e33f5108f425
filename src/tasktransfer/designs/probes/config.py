"""The config of a probe study: common keys, corpora, built models, and what is probed."""

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
from tasktransfer.config.sections import named_once
from tasktransfer.config.training import FIDELITY_OF_FETA, OF_FETA
from tasktransfer.core.architecture import Architecture, ArchitectureKind
from tasktransfer.core.validation import Problem, refuse, unknown
from tasktransfer.designs.probes.facts import (
    CONTROL,
    EVERY,
    NAMES,
    Probe,
    reply_of,
)
from tasktransfer.results.study import Study

BUILT = "recipe"
"""The checkpoint of a model that is built."""

Snapshot = Literal["untrained", "best", "last"] | Annotated[int, Field(ge=0)]


class ArchitectureConfig(Section):
    """An encoder-decoder that is built (section 4.2, Appendix A); defaults: the paper's LSTM."""

    kind: ArchitectureKind = Field(
        description="lstm, lstm_attention, bilstm_attention, hred or transformer"
    )
    embedding: int = Field(default=128, ge=1, le=8192, description="width of word embeddings")
    units: int = Field(default=256, ge=1, le=8192, description="width of hidden states")
    layers: int = Field(
        default=2, ge=1, le=100, description="layers of the encoder, and of the decoder"
    )
    heads: int = Field(default=2, ge=1, le=128, description="attention heads of a Transformer")
    feed_forward: int = Field(
        default=2048, ge=1, le=65_536, description="inner width of a Transformer"
    )
    dropout: Annotated[float, Field(ge=0, le=0.9), NUMBER] = Field(
        default=0.0, description="dropout of a Transformer"
    )
    least_count: Count = Field(
        default=3, description="how often a word is seen in training to be in the vocabulary"
    )

    @model_validator(mode="after")
    def _fits(self) -> ArchitectureConfig:
        if self.kind == "transformer":
            if self.embedding != self.units:
                refuse([(".embedding", f"found {self.embedding}, expected units, {self.units}")])
            if self.units % (2 * self.heads):
                refuse([(".units", f"found {self.units}, expected a multiple of twice the heads")])
        return self

    @property
    def built(self) -> Architecture:
        return Architecture(**self.model_dump())


class ProbedModel(ModelConfig):
    """A model that is built and trained on the next utterance, or a checkpoint, probed as it is."""

    checkpoint: Checkpoint = Field(
        default=BUILT, description="a local folder (./path) or a hub name, where nothing is built"
    )
    architecture: ArchitectureConfig | None = Field(
        default=None, description="what is built and trained; null: the checkpoint is probed"
    )

    may_be_adapted: ClassVar[bool] = False

    @model_validator(mode="after")
    def _one_of_both(self) -> ProbedModel:
        if (self.architecture is None) == (self.checkpoint == BUILT):
            message = "give either an architecture or a checkpoint"
            refuse([(".checkpoint", f"found {self.checkpoint!r}: {message}")])
        if self.architecture is not None and self.family != "encoder_decoder":
            message = "an architecture is an encoder_decoder: write that, or name a checkpoint"
            refuse([(".family", f"found {self.family!r}: {message}")])
        if self.architecture is not None and self.revision is not None:
            message = "only hub names have revisions, and an architecture is built: remove it"
            refuse([(".revision", f"found {self.revision!r}: {message}")])
        return self

    @property
    def recipe(self) -> str | None:
        return None if self.architecture is None else self.architecture.built.weights


class ProbesTraining(TrainingConfig):
    """Hyperparameters of the next utterance."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "task_weighting": "remove it, as no training draws batches of several tasks",
        "loss_on": "remove it, as no decoder is trained",
        "head_learning_rate": "remove it, as its models have no task heads",
        "gradient_checkpointing": "remove it, as its models are not transformers'",
        "fidelity.scoring": "remove it, as BLEU has one way",
        "fidelity.backbone_dropout": "set models[].architecture.dropout",
        "fidelity.head_start": "remove it, as its models have no task heads",
        "fidelity.selection_metrics": "remove it, as BLEU selects",
        "fidelity.repetition_penalty": "remove it, as built models write without one",
        "fidelity.weighting_when_finetuning": "remove it, as none follows one on several tasks",
        **dict.fromkeys(FIDELITY_OF_FETA, OF_FETA),
    }

    epochs: Epochs = Field(default=25, description="passes over the training set")


class ProbesSection(Section):
    """What is probed, and how."""

    tasks: Literal["all"] | Annotated[tuple[str, ...], LIST, NOT_EMPTY, DISTINCT] = Field(
        default=ALL, description="names of probes, or all of Table 1's"
    )
    control: bool = Field(default=False, description="probe a label that is never said as well")
    snapshots: Literal["all"] | Annotated[tuple[Snapshot, ...], LIST, NOT_EMPTY, DISTINCT] = Field(
        default=("untrained", "best", "last"),
        description="which rounds are probed: untrained, best, last, numbers, or all",
    )
    release_compat: bool = Field(
        default=False,
        description="as the released code: the sum of last states, one-vs-rest for all, selection "
        "by BLEU-2 with hypothesis and reference exchanged",
    )
    C: Annotated[float, Field(gt=0), NUMBER] = Field(
        default=1.0, description="inverse strength of the penalty"
    )
    max_iter: int = Field(default=250, ge=1, le=100_000, description="iterations of a fit at most")
    mlp: bool = Field(default=False, description="fit an MLP besides")
    words: bool = Field(default=True, description="fit the same probes on counts of words")
    limit_train: Count | None = Field(
        default=None, description="training turns of a probe at most; null means all"
    )
    word_vectors: UserPath | None = Field(
        default=None,
        description="a text file of word vectors (a word and its numbers a line) or an encoder's "
        "folder, by whose input embeddings snapshots are selected too; null: they are not",
    )
    judgements: UserPath | None = Field(
        default=None,
        description="a CSV file of human judgements whose column choice says tie, for the figure "
        "of ties; null: made-up ones",
    )
    word_in: Literal["context", "target"] = Field(
        default="context", description="where WordCont's word is"
    )

    @property
    def representation(self) -> str:
        return "sum" if self.release_compat else "state"

    @property
    def measure(self) -> str:
        """What selects a snapshot."""
        return "bleu2_exchanged" if self.release_compat else "bleu2"


class ProbesConfig(CommonConfig):
    """A study of what encoders know."""

    data: WholeData = Field(default=WholeData(), description="which dialogues are studied")
    corpora: Annotated[
        tuple[Literal["MultiWOZ", "PersonaChat"], ...], LIST, DISTINCT, Field(min_length=1)
    ] = Field(
        default=("MultiWOZ", "PersonaChat"), description="the corpora, MultiWOZ and PersonaChat"
    )
    models: Annotated[
        tuple[ProbedModel, ...], LIST, Field(min_length=1), AfterValidator(named_once)
    ] = Field(description="models that are built, or checkpoints")
    training: ProbesTraining = Field(default=ProbesTraining(), description="hyperparameters")
    probes: ProbesSection = Field(default=ProbesSection(), description="what is probed, and how")

    @property
    def dataset_names(self) -> tuple[str, ...]:
        return self.corpora

    @property
    def files_read(self) -> Mapping[str, str]:
        named = {key: getattr(self.probes, key) for key in ("word_vectors", "judgements")}
        return {f"probes.{key}": path for key, path in named.items() if path is not None}

    @classmethod
    def contradictions(cls, parts: Mapping[str, Any]) -> Iterator[Problem]:
        yield from super().contradictions(parts)
        probes, training = parts.get("probes"), parts.get("training")
        if probes is None:
            return
        for index, name in enumerate(probes.tasks if probes.tasks != ALL else ()):
            where = [probe.corpus for probe in EVERY if probe.name == name]
            if not where:
                yield Problem(f"probes.tasks[{index}]", unknown("probe", name, NAMES))
            elif "corpora" in parts and not {*where} & {*parts["corpora"]}:
                told = f"{name!r} is a probe of {where[0]}, which corpora lacks: add it there"
                yield Problem(f"probes.tasks[{index}]", f"{told}, or remove the probe")
        for index, corpus in enumerate(parts.get("corpora", ()) if probes.tasks != ALL else ()):
            names = [probe.name for probe in EVERY if probe.corpus == corpus]
            if not {*names} & {*probes.tasks}:
                told = f"probes.tasks names no probe of {corpus}: add one of {', '.join(names)}"
                yield Problem(f"corpora[{index}]", f"{told}, or remove the corpus")
        for index, snapshot in enumerate(probes.snapshots if probes.snapshots != ALL else ()):
            if training and isinstance(snapshot, int) and snapshot > training.epochs:
                yield Problem(
                    f"probes.snapshots[{index}]",
                    f"found {snapshot}, but there are {training.epochs} epochs (training.epochs)",
                )

    def probes_of(self, corpus: str) -> tuple[Probe, ...]:
        """The probes of a corpus that the study fits, in Table 1's order."""
        wanted = NAMES if self.probes.tasks == ALL else self.probes.tasks
        return tuple(
            probe
            for probe in EVERY
            if probe.corpus == corpus
            and probe.name in wanted
            and (probe.name != CONTROL or self.probes.control or self.probes.tasks != ALL)
        )


def probes_config(study: Study) -> ProbesConfig:
    """The config of a study of this design."""
    assert isinstance(study.config, ProbesConfig)
    return study.config


__all__ = ["ProbesConfig", "probes_config", "reply_of"]
