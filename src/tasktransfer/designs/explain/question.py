"""The answer to words: a node, rows of a table, a cell of the design's heatmap, or runs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from tasktransfer.core.nodes import Fit
from tasktransfer.core.runs import Run
from tasktransfer.designs.commands import read_frames
from tasktransfer.designs.explain.explanation import Explanation, NodeFacts, RowFacts, Value
from tasktransfer.designs.explain.nodes import find_node, format_snakemake_command
from tasktransfer.designs.explain.runs import (
    KnownRun,
    compute_means,
    describe_runs,
    get_run_names,
    list_known_runs,
)
from tasktransfer.designs.explain.words import Named, Search, build_unknown_words_error
from tasktransfer.errors import ConfigError, RecordError, format_quantity
from tasktransfer.present.columns import DIFFERS, PUBLISHED
from tasktransfer.present.declared import Analysis, Cells, PivotTable, Table
from tasktransfer.present.html import to_records
from tasktransfer.present.marks import format_notes, list_marks
from tasktransfer.present.numbers import INCOMPLETE, OTHERWISE, is_missing
from tasktransfer.present.tables import AbsentOutput, PrintedTable, build_printed_table
from tasktransfer.results.frames import Frames
from tasktransfer.results.study import Study

Row = Mapping[str, Any]

DIGEST = re.compile(r"^[0-9a-f]{6,64}$")
MARKS = f"{INCOMPLETE}{OTHERWISE}* "
"""Characters after a printed name that are not part of it."""
MOST_RUNS = 24
"""Maximum number of runs that are listed for a row; an average over a matrix has thousands."""


def explain(
    study: Study, analysis: Analysis, words: Sequence[str], instance: int = 0
) -> Explanation:
    """Trace a number, runs or a node back to records and commands.

    Args:
        study: the study.
        analysis: the tables, figures and frames that its design declares.
        words: digest or folder of a node; or name of a table and names of its rows; or names of a
            cell; or names of runs.
        instance: number of the test instance whose prompt is rendered, for a prompted model.

    Raises:
        ConfigError: a name is unknown, or the study does not have the table, row or runs. The
            message lists known names.
        RecordError: the tables are missing or damaged, and words name one of them.
    """
    if len(words) == 1 and (DIGEST.match(words[0]) or Path(words[0]).is_dir()):
        node = find_node(study, words[0], instance)
        title = f"{node.title}: {node.state}"
        return Explanation(title, study.config_file, study.config.results, nodes=(node,))
    if table := find_table(analysis, words[0]):
        question = StudyQuestion(study, words[1:], instance, read_frames(study, analysis))
        return explain_table(question, analysis, table)
    try:
        question = StudyQuestion(study, words, instance, read_frames(study, analysis))
    except RecordError as error:
        question = StudyQuestion(study, words, instance, None, str(error))
    if analysis.cells is None:
        return _explain_runs(question, [])
    return _explain_cell(question, analysis.cells)


def find_table(analysis: Analysis, word: str) -> Table | None:
    """Return the printed table with a name, ignoring case, or None if there is none."""
    return next((t for t in analysis.tables if t.name.casefold() == word.casefold()), None)


@dataclass(frozen=True)
class StudyQuestion:
    """Names that are looked up in a study.

    Attributes:
        words: the names, in any order.
        instance: see ``explain``.
        frames: the study's frames; None, with the reason in ``problem``, if they cannot be read.
    """

    study: Study
    words: Sequence[str]
    instance: int
    frames: Frames | None
    problem: str = ""

    def read_rows(self, name: str) -> tuple[list[Row], str]:
        """Return the rows of a frame, or an empty list and the reason if it cannot be read."""
        try:
            return [] if self.frames is None else [*to_records(self.frames[name])], self.problem
        except (KeyError, RecordError) as error:
            return [], str(error)

    @cached_property
    def known_runs(self) -> list[KnownRun]:
        """The runs of the study's plan and of its tables."""
        return list_known_runs(self.study, self.read_rows("runs")[0])

    def build_explanation(
        self, title: str, rows: Sequence[tuple[RowFacts, list[KnownRun]]], *, marked: bool = True
    ) -> Explanation:
        """Explain rows of a table with their source runs and nodes.

        It has the study's marks if ``marked`` is true.
        """
        study, nodes = self.study, dict[str, NodeFacts]()
        listed = list(dict.fromkeys(known for _, runs in rows for known in runs[:MOST_RUNS]))
        facts, notes = describe_runs(study, listed, self.instance, nodes)
        traced = []
        for row, runs in rows:
            own = tuple(facts[known] for known in runs[:MOST_RUNS])
            means = compute_means(own) if len(own) == len(runs) else None
            traced.append(replace(row, source_runs=len(runs), runs=own, means=means))
        origins = _list_run_notes(study, listed)
        marks = list_marks(self.frames.metadata) if self.frames is not None and marked else []
        return Explanation(
            title,
            study.config_file,
            study.config.results,
            tuple(traced),
            tuple(nodes.values()),
            tuple(format_notes(marks)),
            (*origins, *notes, *_list_differences(nodes.values()), *study.absent),
        )


# --- rows of a printed table ----------------------------------------------------------------------


def explain_table(question: StudyQuestion, analysis: Analysis, table: Table) -> Explanation:
    """Explain the rows of a printed table that match all words, which are keys or printed names.

    Raises:
        ConfigError: the study does not have the table, or the table does not have the row.
    """
    file, frames = question.study.config_file, question.frames
    assert frames is not None
    printed = build_printed_table(analysis, table, frames)
    if isinstance(printed, AbsentOutput):
        raise ConfigError(f"{file}: {printed.why}")
    names = zip(to_records(printed.frame), _list_printed_names(table, printed), strict=True)
    named = [Named(row, _get_row_names(table.keys, row), printed_as) for row, printed_as in names]
    search = Search(named, frames.metadata.shorts)
    found = [named.item for named in search.find(question.words)]
    if not found:
        raise build_unknown_words_error(file, f"row of {table.name}", question.words, [search])
    known, meanings = [] if table.cited else question.known_runs, table.described()
    rows = [
        (_describe_row(table.keys, row, meanings), _select_source_runs(table, row, known))
        for row in found
    ]
    title = f"{printed.title} ({printed.name}): {' '.join(question.words)}"
    return question.build_explanation(title, rows, marked=not table.cited)


def _list_printed_names(table: Table, printed: PrintedTable) -> list[frozenset[str]]:
    """Return the printed names of each row of the frame in lower case, without marks."""
    shape = table.shape
    if isinstance(shape, PivotTable):
        lines = [
            [*(column.show(row) for column in shape.rows), shape.heads(str(row[shape.across]))]
            for row in to_records(printed.frame)
        ]
    else:
        entries = [entry for block in printed.layout.blocks for entry in block]
        lines = [list(entry[0][: printed.layout.numbers]) for entry in entries]
    return [
        frozenset(_remove_marks(text).casefold() for cell in line for text in cell.split("\n"))
        for line in lines
    ]


def _remove_marks(text: str) -> str:
    """Remove marks and parentheses: ``panel†`` becomes ``panel``, and ``(PoE)`` becomes ``PoE``."""
    text = text.rstrip(MARKS)
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


def _get_row_names(keys: Sequence[str], row: Row) -> dict[str, str]:
    return {k: name for k in keys if not is_missing(row[k]) and (name := str(row[k]))}


def _select_source_runs(table: Table, row: Row, known: Sequence[KnownRun]) -> list[KnownRun]:
    is_source = table.runs or partial(_has_names, table.keys)
    listed = [each for each in known if is_source(row, each.run)]
    if table.among is None:
        return listed
    used = {id(run) for run in table.among(row, [each.run for each in listed])}
    return [each for each in listed if id(each.run) in used]


def _has_names(keys: Sequence[str], row: Row, run: Run) -> bool:
    """Return whether a run agrees with a row in all keys that both have."""
    names = get_run_names(run)
    shared = [key for key in keys if key in names and not is_missing(row[key])]
    return bool(shared) and all(names[key] == str(row[key]) for key in shared)


def _describe_row(keys: Sequence[str], row: Row, meanings: Mapping[str, str]) -> RowFacts:
    values = {key: _to_plain_value(value) for key, value in row.items()}
    other = {key: value for key, value in values.items() if key not in keys}
    published = {k: v for k, v in other.items() if k.startswith((PUBLISHED, DIFFERS))}
    return RowFacts(
        {key: values[key] for key in keys if values[key] is not None},
        {key: value for key, value in other.items() if key not in published},
        {key: value for key, value in published.items() if value not in (None, "")},
        {key: meanings[key] for key in other if key in meanings},
    )


def _to_plain_value(value: Any) -> Value:
    if hasattr(value, "tolist"):
        value = value.tolist()
    return None if is_missing(value) else value


# --- a cell of the heatmap ------------------------------------------------------------------------


def _explain_cell(question: StudyQuestion, cells: Cells) -> Explanation:
    """Explain the cell that matches all words, or the matching runs if no cell matches."""
    study, known = question.study, question.known_runs
    rows, problem = question.read_rows(cells.frame)
    search = _build_cell_search(study, cells, known, rows)
    found = search.find(question.words)
    if not found:
        return _explain_runs(question, [search], cells.printed)
    if len(found) > 1:
        raise ConfigError(
            f"{study.config_file}: The words {' '.join(question.words)} match {len(found)} cells. "
            f"Select one cell with {' '.join(key.upper() for key in cells.keys)}."
        )
    row = found[0].item
    runs = [each for each in known if cells.name(each.run) == {k: row[k] for k in cells.keys}]
    references = [each for each in known if cells.is_reference(row, each.run)]
    runs += [replace(each, is_reference=True) for each in references]
    if any(each.in_plan and not each.is_reference for each in runs):
        runs = [each for each in runs if each.in_plan]  # the tables may also have earlier runs
    runs.sort(key=lambda each: each.run.seed)
    shown = {key: value for key, value in row.items() if key not in cells.omits(row)}
    facts = _describe_row(cells.keys, shown, cells.described())
    title = f"cell: {' '.join(map(str, facts.names.values()))}"
    explanation = question.build_explanation(title, [(facts, runs)])
    (facts,) = explanation.rows
    notes, remedy = list(explanation.notes), format_snakemake_command(study, "figures_now")
    if facts.numbers:
        facts = replace(facts, up_to_date=_is_up_to_date(cells, facts))
        notes += cells.notes(rows, row)
    else:
        why = problem or f"the table {cells.frame} in {study.tables} does not contain this cell"
        notes.append(f"no interval and no test: {why}; compute the statistics: {remedy}")
    if facts.up_to_date is False:
        notes.append(
            f"the table {cells.frame} was computed from other records than the current ones; "
            f"recompute it: {remedy}"
        )
    return replace(explanation, rows=(facts,), notes=tuple(notes))


def _build_cell_search(
    study: Study, cells: Cells, known: Iterable[KnownRun], rows: Iterable[Row]
) -> Search[Row]:
    """Return a search over the cells of a frame and over planned cells without a row."""
    by_key = {tuple(row[key] for key in cells.keys): row for row in rows}
    for name in filter(None, (cells.name(each.run) for each in known)):
        by_key.setdefault(tuple(name[key] for key in cells.keys), name)
    named = [Named(row, _get_row_names(cells.keys, row)) for row in by_key.values()]
    return Search(named, cells.shorts(study))


def _is_up_to_date(cells: Cells, row: RowFacts) -> bool:
    if row.means is None or row.numbers[cells.seeds] != [*row.means.seeds]:
        return False
    pairs = zip(cells.means, (row.means.scores.score, row.means.scores.reference), strict=True)
    return all(
        isinstance(then := row.numbers[column], float)
        and now is not None
        and math.isclose(then, now, rel_tol=1e-9)
        for column, now in pairs
    )


def _explain_runs(
    question: StudyQuestion,
    searches: Sequence[Search[Any]],
    printed: Callable[[Run], Sequence[str]] = lambda run: (),
) -> Explanation:
    """Explain the runs that match all words.

    Args:
        question: the question.
        searches: searches that did not find the words; the error lists their names, too.
        printed: run → printed names of its method.
    """
    names = [(each, get_run_names(each.run)) for each in question.known_runs]
    named = [
        Named(
            each,
            {key: name for key, name in by_key.items() if name and key != "seed"},
            frozenset(map(str.casefold, printed(each.run))),
        )
        for each, by_key in names
    ]
    search = Search(named, searches[0].shorts if searches else {})
    # A reference is fitted for several tasks at once, so its names do not contain them.
    fitted = [(each, _list_fitted_tasks(each.item.run, search.shorts)) for each in named]
    by_task = Search(
        [replace(each, printed=each.printed | tasks) for each, tasks in fitted], search.shorts
    )
    found = search.find(question.words) or by_task.find(question.words)
    runs = [each.item for each in found]
    if not runs:
        file = question.study.config_file
        raise build_unknown_words_error(file, "run", question.words, [*searches, search])
    title = f"{' '.join(question.words)}: {format_quantity(len(runs), 'run')}"
    return question.build_explanation(title, [(RowFacts(), runs)])


def _list_fitted_tasks(run: Run, shorts: Mapping[str, str]) -> frozenset[str]:
    """Return the names and short names of the tasks of a run that is a fit, in lower case."""
    tasks = run.outcome.tasks if isinstance(run.outcome, Fit) else ()
    return frozenset(name.casefold() for task in tasks for name in (task, shorts.get(task, task)))


# --- remarks --------------------------------------------------------------------------------------


def _list_run_notes(study: Study, runs: Sequence[KnownRun]) -> list[str]:
    """Return notes on runs that are not in the plan, or that differ from the runs in the tables."""
    notes = []
    if any(not known.in_plan for known in runs):
        notes.append(
            "The study's current plan does not contain these runs, because the config has changed, "
            "or its data or models are not on this disk. The output shows earlier results, and no "
            "command of this study trains them again."
        )
    if any(known.has_other_records for known in runs):
        notes.append(
            f"The tables in {study.tables} contain other runs of this kind than the current plan, "
            "because the config, the data or a model has changed. Run `tasktransfer collect` again."
        )
    elif runs and not any(known.records for known in runs):
        notes.append(
            f"The tables in {study.tables} do not contain these runs. Run `tasktransfer collect` "
            "again."
        )
    return notes


def _list_differences(nodes: Iterable[NodeFacts]) -> list[str]:
    """Return notes on differences in commit, device or version between nodes."""
    made = [node.content["provenance"] for node in nodes if node.content is not None]
    hosts = [provenance["host"] for provenance in made if "host" in provenance]
    packages = dict.fromkeys(name for provenance in made for name in provenance["versions"])
    facts: dict[str, list[str | None]] = {
        "commits": [provenance["commit"] for provenance in made],
        "devices": [host["gpu"] or host["device"] for host in hosts],
        "precisions": [host["precision"] for host in hosts],
        **{
            f"versions of {name}": [each["versions"].get(name) for each in made]
            for name in packages
        },
    }
    distinct = {what: dict.fromkeys(map(str, values)) for what, values in facts.items()}
    notes = [
        f"the records contain {len(values)} {what}: {', '.join(values)}"
        for what, values in distinct.items()
        if len(values) > 1
    ]
    if any(provenance["dirty"] for provenance in made):
        notes.append("some had uncommitted changes: their commit does not fully describe them")
    return notes
