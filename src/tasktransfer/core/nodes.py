"""The nodes of a plan: data, stages, fits and evaluations, and what combines them.

A node's identity is the digest of what changes its numbers, and of nothing else: no paths, no
machine, no micro-batch size. Equal nodes are one node, whatever study asks for them. A field at its
default stays out of the identity, so that a new field leaves old digests alone. ``kind`` and
``label`` are for paths and people. Pure, standard library only: the Snakefile imports this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

from tasktransfer.core.digests import digest_of
from tasktransfer.core.specs import (
    REFUSE_UNKNOWN,
    AdapterStart,
    ModelSpec,
    Sampler,
    Selection,
    Training,
)
from tasktransfer.core.versions import LIBRARY_VERSION, RECIPE_VERSION, raised
from tasktransfer.errors import ConfigError

SHORT = 12
"""Hex digits of a digest that stand in paths."""

Settings = Mapping[str, Any]
Round = Literal["best", "last"] | int
"""A round of a stage: the best by its selection, the last, or its number (0: untrained)."""
Merge = Literal["mean", "max", "min", "ties"]


@dataclass(frozen=True)
class Data:
    """Instances by task and split: read from a release, or derived from other nodes by a recipe.

    ``revision`` is the content digest of the release that is read, also where the instances are
    then derived. ``settings`` are plain values; ``uses`` are the nodes that a recipe reads: data,
    fits, and the stages of trained models. ``cards``: task → digest of its card, of all tasks of
    the dataset; whatever reads the data has those of its own tasks in its identity, and derived
    data have those of the tasks that their settings name. JSON leaves them out (``node_json``).
    """

    __pydantic_config__: ClassVar = REFUSE_UNKNOWN

    name: str
    revision: str
    settings: Settings = field(default_factory=dict, hash=False)
    recipe: str = ""
    uses: tuple[Node, ...] = ()
    cards: Mapping[str, str] = field(default_factory=dict, hash=False, metadata={"told": False})

    @cached_property
    def identity(self) -> dict[str, Any]:
        """The data by themselves; nodes that read them have ``identity_for`` their tasks."""
        read = {"dataset": self.name, "data_revision": self.revision}
        if not self.recipe:
            return {**read, **self.settings}
        derived = {
            "library": LIBRARY_VERSION,
            "recipe": self.recipe,
            "settings": dict(self.settings),
            "uses": _digests(self.uses),
            **_said({"versions": raised("recipe", (self.recipe,))}),
            **_said({"cards": self.cards_of(_texts_in(self.settings))}),
        }
        return {**read, "derived": derived}

    def identity_for(self, tasks: Iterable[str]) -> dict[str, Any]:
        """What stands for the data in the identity of a node that reads these tasks."""
        return {**self.identity, **_said({"cards": self.cards_of(tasks)})}

    def cards_of(self, tasks: Iterable[str]) -> dict[str, str]:
        """The digests of the cards of those that are tasks of the dataset."""
        return {task: self.cards[task] for task in tasks if task in self.cards}

    @cached_property
    def digest(self) -> str:
        return digest_of(self.identity)

    @property
    def longer_by(self) -> int:
        """How many tokens more than a model's ``max_length`` its inputs may have: those of words
        that a recipe has put before them, as its setting ``longer_by`` says."""
        return int(self.settings.get("longer_by", 0))

    @property
    def path(self) -> str:
        """Where derived data lie, relative to the results folder; what is read lies elsewhere."""
        return f"data/derived/{self.recipe}/{self.name}-{self.digest[:SHORT]}"

    @property
    def label(self) -> str:
        """A readable name."""
        return f"{self.name} ({self.recipe})" if self.recipe else self.name


@dataclass(frozen=True)
class Start:
    """Parameters that a stage or an outcome begins with.

    ``stage``: where they come from; None: the base model. ``at``: which of its rounds. ``parts``:
    the named parts that are taken (``family.parts``); none: all that both models have. ``into``:
    what they are called here; none: the same. ``merged``: several starts that lead into the same
    parts are merged element by element.
    """

    __pydantic_config__: ClassVar = REFUSE_UNKNOWN

    stage: Stage | None
    at: Round = "best"
    parts: tuple[str, ...] = ()
    into: tuple[str, ...] = ()
    merged: Merge | None = None

    def __post_init__(self) -> None:
        if self.stage and self.at != "best" and not self.stage.keeps_rounds:
            raise ConfigError(
                f"start from {self.stage.label} at {self.at}: this stage keeps its best round "
                "alone; give its selection keep: every, or start at best"
            )
        if self.stage and isinstance(self.at, int) and not self.stage.keeps(self.at):
            raise ConfigError(
                f"start from {self.stage.label} at {self.at}: this stage keeps the rounds "
                f"{', '.join(map(str, self.stage.selection.rounds))}; add {self.at} to them"
            )

    @property
    def is_plain(self) -> bool:
        """Whether it is all of a stage's best round."""
        return (self.at, self.parts, self.into, self.merged) == ("best", (), (), None)

    @property
    def selected_on(self) -> tuple[str, ...]:
        """The tasks by which its round was chosen, where these are not the stage's training tasks:
        they name one of the several rounds that such a stage may leave."""
        if self.stage is None or self.at != "best":
            return ()
        return self.stage.told_apart(self.stage.selection)

    @property
    def identity(self) -> dict[str, Any]:
        chosen = {
            "selected_on": list(self.selected_on),
            "parts": list(self.parts),
            "into": list(self.into),
            "merged": self.merged,
        }
        return {
            "stage": self.stage.digest if self.stage else None,
            "at": self.at,
            **_said(chosen),
        }


@dataclass(frozen=True)
class Stage:
    """One training: what to train on, what selects the best round, and where to start.

    ``train_tasks`` and the selecting tasks are sets and sorted. ``starts``: none is the base model.
    ``trains``: the named parts that move; none: all. ``tests``: the tasks whose test splits are
    predicted and scored with the best round, in the training's own process; None: the selecting
    task where there is one, and none where there are several. ``recipe``: the latest of its
    tasks' recipes.

    By whose dev splits a round is chosen changes no update, so trainings that differ in it alone
    are one: ``selection`` is that of who asks for the stage, ``also_selected`` those of others in
    the same plan, and the training leaves a best round for each (ADR 0029).
    """

    __pydantic_config__: ClassVar = REFUSE_UNKNOWN

    kind: str
    label: str
    data: Data
    model: ModelSpec
    train_tasks: tuple[str, ...]
    selection: Selection
    training: Training
    seed: int
    starts: tuple[Start, ...] = ()
    trains: tuple[str, ...] = ()
    sampler: Sampler = "task_batches"
    tests: tuple[str, ...] | None = None
    recipe: int = RECIPE_VERSION
    also_selected: tuple[Selection, ...] = ()

    def __post_init__(self) -> None:
        if self.tests and self.also_selected:
            raise ConfigError(
                f"{self.label}: its best round is chosen by several sets of tasks, and tests on "
                f"{', '.join(self.tests)} do not say with which round; ask for an evaluation"
            )
        if self.starts and (problem := self._unfit_adapter):
            raise ConfigError(f"{self.label}: {problem}")

    @property
    def _unfit_adapter(self) -> str | None:
        """What keeps it from starting with the adapters of its starts."""
        own = self.model.adapter
        others = [start.stage for start in self.starts if start.stage is not None]
        if strange := [other.label for other in others if other.model.adapter != own]:
            return (
                f"starts from {strange[0]}, which is trained with another adapter, or with one "
                "alone of the two; give both the same models[].adapter"
            )
        if own is not None and own.start != "continue" and others and not self.starts_whole:
            return (
                f"an adapter is started by {own.start} from all of one training's best round, and "
                "parts or other rounds are asked for; set models[].adapter.start: continue"
            )
        return None

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that changes this stage's numbers; those it starts from by their digests."""
        return {
            "recipe": self.recipe,
            **self.data.identity_for(self._read),
            "model": self.model.identity,
            "train_tasks": list(self.train_tasks),
            "parent": self.starts[0].identity["stage"] if self.starts_whole else None,
            "training": self.training.identity,
            "seed": self.seed,
            **self._set,
        }

    @property
    def _read(self) -> tuple[str, ...]:
        """The tasks whose cards change its numbers: of training, its own selection, and tests."""
        return (*self.train_tasks, *self.selection.tasks, *(self.tests or ()))

    @property
    def starts_whole(self) -> bool:
        """Whether it goes on from all of another stage's best round, and from nothing else."""
        return len(self.starts) == 1 and self.starts[0].is_plain

    @property
    def reads_base(self) -> bool:
        """Whether it reads the released model: where it begins with it, or trains an adapter, whose
        checkpoints have nothing of the model under it."""
        return not self.starts_whole or self.model.adapter is not None

    @property
    def adapter_start(self) -> AdapterStart | None:
        """What becomes of the adapter that it starts from, where it does not just go on."""
        adapter = self.model.adapter
        if adapter is None or adapter.start == "continue" or not self.starts_whole:
            return None
        return adapter.start

    @property
    def _set(self) -> dict[str, Any]:
        """What is not at its default."""
        values = {
            "parent_selected_on": list(self.starts[0].selected_on) if self.starts_whole else [],
            "selection": self.selection.identity,
            "starts": [] if self.starts_whole else [start.identity for start in self.starts],
            "trains": list(self.trains),
            "sampler": "" if self.sampler == "task_batches" else self.sampler,
            "adapter_start": self.adapter_start or "",
        }
        chosen = _said(values)
        return chosen if self.tests is None else {**chosen, "tests": list(self.tests)}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the identity, in hex."""
        return digest_of(self.identity)

    @property
    def dataset(self) -> str:
        """The dataset whose instances are read."""
        return self.data.name

    @property
    def select_on(self) -> tuple[str, ...]:
        """The tasks whose dev splits select the round that is asked for here."""
        return self.selection.tasks

    @property
    def selections(self) -> tuple[Selection, ...]:
        """All that choose a round of it, sorted by their tasks."""
        return tuple(sorted((self.selection, *self.also_selected), key=lambda one: one.tasks))

    @property
    def measured_on(self) -> tuple[str, ...]:
        """The tasks whose dev splits are measured after every round, sorted."""
        return tuple(sorted({task for one in self.selections for task in one.tasks}))

    @property
    def tested(self) -> tuple[str, ...]:
        """The tasks whose test splits are scored, sorted."""
        return tuple(task for one in self.selections for task in self.tested_by(one))

    def tested_by(self, selection: Selection) -> tuple[str, ...]:
        """The tasks whose test splits are scored with the round that a selection has chosen."""
        if self.tests is not None:
            return self.tests
        return selection.tasks if len(selection.tasks) == 1 else ()

    def told_apart(self, selection: Selection) -> tuple[str, ...]:
        """What names the round that a selection has chosen: its tasks, or nothing where these are
        the training tasks."""
        return () if selection.tasks == self.train_tasks else selection.tasks

    @property
    def tasks(self) -> tuple[str, ...]:
        """Every task that is trained, selects or is tested, sorted."""
        return tuple(sorted({*self.train_tasks, *self.measured_on, *self.tested}))

    def keeps(self, number: int) -> bool:
        """Whether the parameters of a round are left, whatever was best."""
        return any(one.keeps(number) for one in self.selections)

    @property
    def keeps_rounds(self) -> bool:
        """Whether parameters of other rounds than the best are left."""
        return any(one.keep == "every" for one in self.selections)

    @property
    def parents(self) -> tuple[Stage, ...]:
        """The stages that it starts from, each once."""
        return _stages_of(self.starts)

    @property
    def uses(self) -> tuple[Node, ...]:
        """The nodes that have to be there before it."""
        return (*([self.data] if self.data.recipe else []), *self.parents)

    @cached_property
    def path(self) -> str:
        """Where its results live, relative to the results folder; ends in the digest."""
        return (
            f"stages/{self.kind}/{self.data.name}/{self.model.name}/{self.label}"
            f"/seed{self.seed}-{self.digest[:SHORT]}"
        )


@dataclass(frozen=True)
class Fit:
    """What a library fits in one call, one model per task: a fastText classifier, linear probes.

    ``learner``: a name in ``fits.LEARNERS`` or of the design. ``on``: the model whose
    representations are the features; None: the instances' texts. ``reads``: other fits, whose
    numbers it is made of, and trainings, whose best rounds it reads.
    """

    __pydantic_config__: ClassVar = REFUSE_UNKNOWN

    learner: str
    data: Data
    tasks: tuple[str, ...]
    seed: int = 0
    settings: Settings = field(default_factory=dict, hash=False)
    on: Start | None = None
    reads: tuple[Node, ...] = ()

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that changes its numbers."""
        return {
            "library": LIBRARY_VERSION,
            "learner": self.learner,
            **_said({"reads": _digests(self.reads)}),
            **_said({"versions": raised("learner", (self.learner,))}),
            **self.data.identity_for(self.tasks),
            "tasks": list(self.tasks),
            "seed": self.seed,
            "settings": dict(self.settings),
            "on": self.on.identity if self.on else None,
        }

    @cached_property
    def digest(self) -> str:
        return digest_of(self.identity)

    @property
    def label(self) -> str:
        """A readable name."""
        if selector := self.settings.get("selector"):
            return f"{selector}_of_{_joined(self.tasks)}"
        of = f"{self.on.stage.label}@{self.on.at}" if self.on and self.on.stage else "texts"
        return f"{_joined(self.tasks)}_on_{of}"

    @property
    def uses(self) -> tuple[Node, ...]:
        """The nodes that have to be there before it."""
        on = (self.on.stage,) if self.on and self.on.stage else ()
        return (*([self.data] if self.data.recipe else []), *on, *self.reads)

    @cached_property
    def path(self) -> str:
        name = f"{self.learner}/{self.data.name}/{self.label}"
        return f"fits/{name}/seed{self.seed}-{self.digest[:SHORT]}"


@dataclass(frozen=True)
class Outcome:
    """What is judged: one stage's model, or several combined without training.

    ``combine``: None for one start; ``mean`` of several models' answers; ``route``: each instance
    goes to the model of its domain, the n-th start to the n-th of ``domains``. Merged parameters
    are starts with ``merged``. ``model``: the base model that is judged as it was released; there
    are no starts then.
    """

    __pydantic_config__: ClassVar = REFUSE_UNKNOWN

    starts: tuple[Start, ...]
    combine: Literal["mean", "route"] | None = None
    domains: tuple[str, ...] = ()
    model: ModelSpec | None = None

    @property
    def identity(self) -> dict[str, Any]:
        model = self.model.identity if self.model else None
        chosen = {"combine": self.combine, "domains": list(self.domains), "model": model}
        return {
            "starts": [start.identity for start in self.starts],
            **_said(chosen),
        }

    @cached_property
    def digest(self) -> str:
        return digest_of(self.identity)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages whose parameters it has, each once."""
        return _stages_of(self.starts)

    @property
    def label(self) -> str:
        """A readable name."""
        released = f"{self.model.name}_as_released" if self.model else "base"
        text = _joined(tuple(stage.label for stage in self.stages)) or released
        how = self.combine or (self.starts[0].merged if self.starts else None)
        return f"{text}_{how}" if how else text


@dataclass(frozen=True)
class Pool:
    """Training instances of a task, whose right answers are answers to choose from."""

    __pydantic_config__: ClassVar = REFUSE_UNKNOWN

    data: Data
    task: str


@dataclass(frozen=True)
class Evaluation:
    """Numbers of an outcome or a fit on a split of a task: a row an instance, and the measures.

    ``pools``: where answers are looked for.
    """

    __pydantic_config__: ClassVar = REFUSE_UNKNOWN

    of: Outcome | Fit
    data: Data
    task: str
    measures: tuple[str, ...]
    split: Literal["train", "dev", "test"] = "test"
    settings: Settings = field(default_factory=dict, hash=False)
    pools: tuple[Pool, ...] = ()

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that changes its numbers."""
        pools = [[pool.data.digest, pool.task] for pool in self.pools]
        cards = self.data.cards_of((self.task,))
        for pool in self.pools:
            cards |= pool.data.cards_of((pool.task,))
        return {
            "library": LIBRARY_VERSION,
            **_said({"pools": pools}),
            "of": self.of.digest,
            **self.data.identity,
            **_said({"cards": cards}),
            "task": self.task,
            "measures": list(self.measures),
            **_said({"versions": raised("measure", self.measures)}),
            "split": self.split,
            "settings": dict(self.settings),
        }

    @cached_property
    def digest(self) -> str:
        return digest_of(self.identity)

    @property
    def asked(self) -> Settings | None:
        """How a model as released is asked by a prompt (``evaluation.prompting``): ``shots``,
        ``wording`` (its place in the card) and ``prompt`` (its digest), ``seed`` of the shots, and
        what is not at its default. None: nothing is asked by a prompt."""
        said: Settings | None = self.settings.get("asked")
        return said

    @property
    def label(self) -> str:
        """A readable name."""
        if self.asked is not None and isinstance(self.of, Outcome) and self.of.model is not None:
            how = f"asked-{self.asked['wording']}-with-{self.asked['shots']}-shots"
            return f"{self.task}-{self.split}_of_{self.of.model.name}_{how}"
        return f"{self.task}-{self.split}_of_{self.of.label}"

    @property
    def uses(self) -> tuple[Node, ...]:
        """The nodes that have to be there before it."""
        of: tuple[Node, ...] = (self.of,) if isinstance(self.of, Fit) else self.of.stages
        return (*(data for data in self.read if data.recipe), *of)

    @property
    def read(self) -> tuple[Data, ...]:
        """The data that it reads."""
        return (self.data, *(pool.data for pool in self.pools))

    @property
    def model_names(self) -> tuple[str, ...]:
        """The models, as the study names them, whose token ids it reads."""
        if isinstance(self.of, Fit) or self.asked is not None:
            return ()
        released = (self.of.model.name,) if self.of.model else ()
        return tuple(dict.fromkeys((*released, *(s.model.name for s in self.of.stages))))

    @cached_property
    def path(self) -> str:
        """Where its results live, relative to the results folder; ends in the digest."""
        return f"evaluations/{self.data.name}/{self.label}/{self.digest[:SHORT]}"


Node = Data | Stage | Fit | Evaluation


def _stages_of(starts: tuple[Start, ...]) -> tuple[Stage, ...]:
    return tuple({start.stage.digest: start.stage for start in starts if start.stage}.values())


def _digests(nodes: tuple[Node, ...]) -> list[Any]:
    """What stands for the nodes that another reads: a stage with what chose its round, where that
    does not follow from its training tasks."""
    named: list[Any] = []
    for node in nodes:
        start = Start(node) if isinstance(node, Stage) else None
        named.append(start.identity if start and start.selected_on else node.digest)
    return named


def with_all_selections(stage: Stage, others: Iterable[Stage]) -> Stage:
    """A stage that leaves what it and equal stages are asked for."""
    selections = {one.tasks: one for one in stage.selections}
    for other in (one for equal in others for one in equal.selections):
        same = selections.get(other.tasks)
        selections[other.tasks] = other if same is None else same.with_rounds_of(other)
    own = selections.pop(stage.select_on)
    also = tuple(selections[tasks] for tasks in sorted(selections))
    if (own, also) == (stage.selection, stage.also_selected):
        return stage
    return replace(stage, selection=own, also_selected=also)


def _said(values: Mapping[str, Any]) -> dict[str, Any]:
    """What of some values is part of an identity: none that is empty or None."""
    return {name: value for name, value in values.items() if value}


def _texts_in(value: Any) -> Iterator[str]:
    """Every text among plain values, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts_in(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts_in(item)


def _joined(names: tuple[str, ...]) -> str:
    """Names for a path: the first ones, and how many more, as a folder's name has a limit."""
    shown = "+".join(names[:4])
    return f"{shown}+{len(names) - 4}more" if len(names) > 4 else shown
