"""An explanation: the way from rows of a table to their source runs, nodes and records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from tasktransfer.files import json_text
from tasktransfer.results.schema import OtherNode, Record, StageNode

if TYPE_CHECKING:
    from tasktransfer.jobs.prompt_job import RenderedPrompts

Value = float | int | str | bool | list[object] | None
"""A value in a row of a table."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node: its state, its record, the nodes related to it, and how to compute it again.

    Attributes:
        digest: digest of the node; 12 digits if the node has neither a plan nor a record.
        node: description of the node, as in its record; None if there is neither.
        error: the damage, or the last line of the error.
        content: content of the record; None if it cannot be read.
        commands: commands that compute it again; empty for a node outside the plan.
        uses, users: nodes that it needs, and nodes that need it, without their own ``uses`` and
            ``users``.
        prompt: a prompt of a prompted model, or the reason why it cannot be rendered.
    """

    digest: str
    node: StageNode | OtherNode | None
    folder: str
    record: str
    log: str | None
    state: str
    error: str | None
    content: Record | None = None
    in_plan: bool = False
    commands: tuple[str, ...] = ()
    uses: tuple[NodeFacts, ...] = ()
    users: tuple[NodeFacts, ...] = ()
    prompt: RenderedPrompts | str | None = None

    @property
    def title(self) -> str:
        """Kind of the node (for a training, its step) and its label."""
        if self.node is None:
            return f"node in {self.folder}"
        kind = self.node["step"] if self.node["kind"] == "stage" else self.node["kind"]
        return f"{kind} {self.node['label']}"


@dataclass(frozen=True, slots=True)
class RunFacts:
    """A source run.

    Attributes:
        names: method, model, seed and the values of ``Run.about``.
        reason: why it has no result; empty if it has one.
        score: its test score in its current record; None if it has none or several.
        is_reference: whether other runs are compared with it.
        nodes: digests of its nodes, in the order in which they are computed.
    """

    names: Mapping[str, str]
    state: str
    reason: str
    score: float | None
    is_reference: bool
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComparedScores:
    """A score, the reference's score, and their difference in points and percent."""

    score: float | None
    reference: float | None
    delta: float | None
    improvement: float | None


@dataclass(frozen=True, slots=True)
class Means:
    """Means over the seeds that have all scores, computed from the current records.

    Attributes:
        scores: the means.
        seeds: the seeds.
        reference: method of the reference runs; empty if there are none.
        references: number of reference runs in their mean.
        by_seed: scores of every planned seed.
    """

    scores: ComparedScores
    seeds: tuple[int, ...]
    reference: str
    references: int
    by_seed: Mapping[int, ComparedScores]


@dataclass(frozen=True, slots=True)
class RowFacts:
    """A row of a table with its source runs, or runs that were found by their names.

    Attributes:
        names: values of the table's keys; empty for runs that were found by their names.
        numbers: other columns; empty if the row has not been computed.
        published: published values, and how they differ.
        meanings: meanings of columns.
        source_runs: number of source runs, of which ``runs`` lists the first.
        means: means over seeds; None if the runs differ in more than their seeds.
        up_to_date: whether the numbers are those of the current records; None if not checked.
    """

    names: Mapping[str, Value] = field(default_factory=dict)
    numbers: Mapping[str, Value] = field(default_factory=dict)
    published: Mapping[str, Value] = field(default_factory=dict)
    meanings: Mapping[str, str] = field(default_factory=dict)
    source_runs: int = 0
    runs: tuple[RunFacts, ...] = ()
    means: Means | None = None
    up_to_date: bool | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer to ``tasktransfer explain``.

    Attributes:
        rows: rows of a table, or one entry with the runs that were found; empty for a node.
        nodes: nodes of all listed runs, each once.
        marks: caveats that apply to every number of the study.
        notes: remarks for the reader.
    """

    title: str
    config: str
    results: str
    rows: tuple[RowFacts, ...] = ()
    nodes: tuple[NodeFacts, ...] = ()
    marks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def as_json(explanation: Explanation) -> str:
    """Format an explanation as JSON, with the fields of the types in this module."""
    return f"{json_text.encode(asdict(explanation), indent=2)}\n"
