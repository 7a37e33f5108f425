"""The config of the study: its keys in addition to the common ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from tasktransfer.config import CommonConfig, DataConfig, EndpointConfig
from tasktransfer.config.brought import Brought
from tasktransfer.config.fields import DISTINCT, LIST, NUMBER, Count, Section, UserPath
from tasktransfer.config.models import check_unique_names
from tasktransfer.core.specs import Training
from tasktransfer.core.validation import Problem
from tasktransfer.designs.empathetic.contradictions import find_contradictions
from tasktransfer.designs.empathetic.human_section import HumanConfig
from tasktransfer.designs.empathetic.methods import TOPIC_TASKS, parse_prepend
from tasktransfer.designs.empathetic.prompted_section import PromptedRepliers
from tasktransfer.designs.empathetic.sources.cards import DAILY, ED, LABELS, PAIRS, TAGS
from tasktransfer.designs.empathetic.training_sections import (
    ClassifierConfig,
    EmotionsConfig,
    EmpatheticModel,
    EmpatheticTraining,
    GenerationConfig,
    Overrides,
    PretrainingConfig,
    SettingConfig,
    TopicsConfig,
)
from tasktransfer.results.study import Study

Read = Literal[
    "EmpatheticDialogues", "DailyDialogReplies", "DailyDialog", "Newsgroups", "ReplyPairs",
    "GoEmotions",
]  # fmt: skip
PoolName = Literal["ED", "ED+DD", "R", "ED+DD+R"]
Control = Literal["gold", "random", "untrained", "longer", "words"]
Setting = Literal["retrieval", "generation"]


class EmpatheticData(DataConfig):
    """Dialogues of the study, and folders of the other data."""

    releases: dict[Read, UserPath] = Field(
        default={},
        description=(
            "folder with the release of each dataset, in the form name: folder; a dataset that "
            "is not listed is read from data.release"
        ),
    )

    def get_release(self, dataset: str) -> str:
        folders: Mapping[Any, str] = self.releases
        return folders.get(dataset, self.release)

    def is_generated(self, dataset: str) -> bool:
        return self.generated and dataset not in self.releases


class DecodingConfig(Section):
    """Diverse beam search, which is greedy decoding if there is one group of one beam.

    The values are our choice, because the paper does not report them.
    """

    groups: int = Field(default=3, ge=1, le=100, description="number of beam groups")
    beams: int = Field(default=2, ge=1, le=100, description="number of beams per group")
    diversity_penalty: Annotated[float, Field(ge=0, le=100), NUMBER] = Field(
        default=0.5,
        description=(
            "amount that is subtracted from a token's score for each earlier group that selected "
            "the token at the same step"
        ),
    )
    max_words: int = Field(
        default=40, ge=1, le=1000, description="maximum number of words in a reply"
    )


class EvaluationConfig(Section):
    """Evaluation of replies."""

    block: int = Field(
        default=100,
        ge=2,
        le=10_000,
        description="number of replies in a block, which is the k of P@1,k",
    )
    shuffles: int = Field(
        default=20,
        ge=2,
        le=1000,
        description="number of random row orders for which P@1 is computed",
    )
    pools: Annotated[tuple[PoolName, ...], LIST, DISTINCT] = Field(
        default=("ED", "ED+DD"),
        description=(
            "pools of candidate replies from which retrieval models select a reply when BLEU is "
            "computed"
        ),
    )
    pool_words: int = Field(
        default=20, ge=1, le=1000, description="maximum number of words in a candidate reply"
    )
    limit: Count | None = Field(
        default=None,
        description=(
            "maximum number of test replies for P@1, in whole blocks of consecutive replies; null "
            "to use all test replies"
        ),
    )
    limit_generated: Count | None = Field(
        default=None,
        description="maximum number of test replies to generate; null to use the value of limit",
    )
    limit_pool: Count | None = Field(
        default=None,
        description=(
            "maximum number of candidates per dataset in a pool; null to use all candidates"
        ),
    )
    decoding: DecodingConfig = Field(
        default=DecodingConfig(), description="decoding settings of generated replies"
    )


class EmpatheticConfig(CommonConfig):
    """A study of empathetic replies."""

    data: EmpatheticData = Field(
        default=EmpatheticData(), description="dialogues of the study and where they are stored"
    )
    models: Annotated[
        tuple[EmpatheticModel, ...], LIST, Field(min_length=1), AfterValidator(check_unique_names)
    ] = Field(
        description=(
            "models of the study; each has either an architecture, or a checkpoint and its model "
            "family"
        )
    )
    training: EmpatheticTraining = Field(
        default=EmpatheticTraining(), description="default hyperparameters of all training runs"
    )
    retrieval: SettingConfig | None = Field(
        default=None, description="settings of the methods that retrieve replies"
    )
    generation: GenerationConfig | None = Field(
        default=None, description="settings of the methods that generate replies"
    )
    classifier: ClassifierConfig | None = Field(
        default=None, description="encoder that is trained to classify emotions, for ensembles"
    )
    pretraining: PretrainingConfig = Field(
        default=PretrainingConfig(),
        description=(
            "settings of the method that is first trained on replies from outside "
            "EmpatheticDialogues"
        ),
    )
    emotions: EmotionsConfig = Field(
        default=EmotionsConfig(), description="settings of the fastText classifier of emotions"
    )
    topics: TopicsConfig = Field(
        default=TopicsConfig(), description="settings of the fastText classifier of topics"
    )
    evaluation: EvaluationConfig = Field(
        default=EvaluationConfig(), description="settings of the evaluation of replies"
    )
    controls: Annotated[tuple[Control, ...], LIST, DISTINCT] = Field(
        default=(),
        description=(
            "controls to run. `gold` is EmoPrepend-1 with gold labels, which is not comparable "
            "with other methods. `random` is EmoPrepend-1 with random labels. `untrained` is an "
            "ensemble whose second encoder was not trained on emotions. `longer` is Base trained "
            "a second time for as many epochs as an ensemble. `words` ranks replies by TF-IDF, "
            "without a model"
        ),
    )
    brought: Brought = Field(
        default=(), description="your own systems, each with its replies to the test contexts"
    )
    prompted: PromptedRepliers = Field(
        default=(),
        description="prompted language models, which generate replies without fine-tuning",
    )
    human: HumanConfig | None = Field(
        default=None,
        description="human judgements of replies for the report; null to use none",
    )
    release_compat: bool = Field(
        default=False,
        description=(
            "true to follow the paper's code, which puts the best label last, keeps the spelling "
            "of newsgroups and drops the last block of P@1"
        ),
    )

    @property
    def settings(self) -> dict[Setting, SettingConfig]:
        """The configured settings (retrieval, generation) and their sections."""
        both: dict[Setting, SettingConfig | None] = {
            "retrieval": self.retrieval,
            "generation": self.generation,
        }
        return {name: section for name, section in both.items() if section}

    @property
    def methods(self) -> tuple[str, ...]:
        """All methods of the retrieval and generation settings."""
        return tuple(dict.fromkeys(m for s in self.settings.values() for m in s.methods))

    @property
    def brought_files(self) -> Mapping[str, str]:
        return {replier.name: replier.file for replier in self.brought}

    @property
    def endpoints(self) -> Mapping[str, EndpointConfig]:
        return {replier.model: replier for replier in self.prompted if replier.endpoint}

    @property
    def prompted_names(self) -> tuple[str, ...]:
        """Names of the prompted models."""
        return tuple(replier.model for replier in self.prompted)

    @property
    def replier_comparison(self) -> tuple[Setting, dict[str, Any]]:
        """The setting in which untrained repliers are compared with Base, and its limits.

        Base's replies are the generated ones or, in a study without generation, the ones that are
        retrieved from the first pool.
        """
        limits = self.evaluation
        if self.generation is not None:
            limit = limits.limit_generated or limits.limit
            return "generation", {"limit": limit} if limit else {}
        limited = {"limit": limits.limit} if limits.limit else {}
        return "retrieval", {**limited, **({"pool": limits.pools[0]} if limits.pools else {})}

    @property
    def dataset_names(self) -> tuple[str, ...]:
        names = [ED]
        if self.pretrains or any("DD" in pool for pool in self.evaluation.pools):
            names.append(self.pretraining.dataset if self.pretrains else DAILY)
        if self.retrieval and any("DD" in pool for pool in self.evaluation.pools):
            names.append(DAILY)
        if self.retrieval and any("R" in pool.split("+") for pool in self.evaluation.pools):
            names.append(PAIRS)
        if any(parse_prepend(m) and m.startswith("topic") for m in self.methods):
            names.append(self.topics.dataset)
        if "ensemble-tags" in self.methods:
            names.append(TAGS)
        return tuple(dict.fromkeys(names))

    @property
    def pretrains(self) -> bool:
        """True if any model is first trained on replies from outside EmpatheticDialogues."""
        return "generation" in self.settings or self.pretraining.retrieval

    def list_vocabulary_datasets(self, model: str) -> tuple[str, ...]:
        """Return the datasets that the model's vocabulary is built from.

        They do not depend on the study's methods and pools, because words of other data would
        change Base.
        """
        chooses = any(
            config.name == model and config.family == "dual_encoder" for config in self.models
        )
        pretrained = self.pretraining.retrieval or not chooses
        read = (ED, self.pretraining.dataset) if pretrained else (ED,)
        return tuple(name for name in read if name in self.dataset_names)

    @property
    def analysis_files(self) -> Mapping[str, str]:
        files = self.human.files if self.human else {}
        return {f"human.{key}": path for key, path in files.items()}

    @property
    def known_labels(self) -> tuple[str, ...]:
        """Labels that any method can prepend, regardless of the study's methods."""
        return (*LABELS, *(label for task in TOPIC_TASKS.values() for label in task.labels))

    def resolve_hyperparameters(
        self, setting: Setting | None, *sections: Overrides | None
    ) -> Training:
        """Return the hyperparameters of ``training``, overridden by those of other sections.

        Later sections take precedence. ``cosine_scale`` applies to retrieval only.
        """
        values = self.training.resolve()
        if setting != "retrieval":
            values["cosine_scale"] = None
        for section in sections:
            for key in Overrides.model_fields if section else ():
                if getattr(section, key) is not None:
                    values[key] = getattr(section, key)
        return Training(**values)

    @classmethod
    def find_contradictions(cls, parts: Mapping[str, Any]) -> Iterator[Problem]:
        yield from find_contradictions(parts)


def get_config(study: Study) -> EmpatheticConfig:
    """Return the config of a study of this design."""
    assert isinstance(study.config, EmpatheticConfig)
    return study.config
