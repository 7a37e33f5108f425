"""Lookup of the cell that a user names: typed names are matched with the study's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import pandas as pd

from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Cell:
    """Key of a heatmap cell; ``sources`` is sorted, and empty for a baseline."""

    dataset: str
    model: str
    algorithm: str
    sources: tuple[str, ...]
    target: str

    @property
    def source(self) -> str:
        """Sources joined by ``+``, as in the tables."""
        return "+".join(self.sources)

    def __str__(self) -> str:
        origin = f"{self.source} -> " if self.sources else ""
        return f"{self.dataset} {self.model} {self.algorithm} {origin}{self.target}"

    @property
    def baseline(self) -> Cell:
        """Baseline with which the cell is compared."""
        return Cell(self.dataset, self.model, BASELINE, (), self.target)


def cell_of(run: Run) -> Cell:
    """Return the cell of a planned run."""
    return Cell(
        run.about["dataset"], run.model, run.method, run.about["sources"], run.about["target"]
    )


def cells_of(runs: pd.DataFrame) -> list[Cell]:
    """Return the distinct cells of a table of runs, in its order."""
    columns = runs[["dataset", "model", "algorithm", "sources", "target"]]
    cells = (
        Cell(dataset, model, algorithm, tuple(sources), target)
        for dataset, model, algorithm, sources, target in columns.itertuples(index=False, name=None)
    )
    return list(dict.fromkeys(cells))


def find_cell(
    known: Iterable[Cell],
    shorts: Mapping[str, str],
    dataset: str,
    model: str,
    algorithm: str,
    tasks: Sequence[str],
) -> Cell:
    """Return the cell that the user names.

    Args:
        known: every cell of the study.
        shorts: short name by task; ``tasks`` may contain either, in any case.
        dataset, model, algorithm: names.
        tasks: source (several joined by ``+``) and target; for a baseline only the target.

    Raises:
        ConfigError: a name is unknown (lists the known names and suggests the closest), or the
            study has no such cell.
    """
    cells = list(known)
    if not cells:
        raise ConfigError("the study has no cell: neither its plan nor its tables name a run")
    dataset = _pick("dataset", dataset, [cell.dataset for cell in cells])
    cells = [cell for cell in cells if cell.dataset == dataset]
    model = _pick(f"model of {dataset}", model, [cell.model for cell in cells])
    algorithm = _pick("algorithm", algorithm, [cell.algorithm for cell in cells])
    names = [task for cell in cells for task in (*cell.sources, cell.target)]
    source, target = _split(algorithm, tasks)
    sources = sorted({_pick_task(dataset, word, names, shorts) for word in source})
    cell_asked = Cell(
        dataset, model, algorithm, tuple(sources), _pick_task(dataset, target, names, shorts)
    )
    if cell_asked not in cells:
        raise ConfigError(_describe_missing_cell(cell_asked, cells))
    return cell_asked


def _split(algorithm: str, tasks: Sequence[str]) -> tuple[list[str], str]:
    """Split the words into those for the sources and the one for the target."""
    *source, target = tasks
    if algorithm == BASELINE and source:
        raise ConfigError(f"a baseline has no source: give the target alone, not {' '.join(tasks)}")
    if algorithm != BASELINE and len(source) != 1:
        raise ConfigError(
            f"{algorithm} needs SOURCE TARGET (several sources joined by +), found "
            f"{' '.join(tasks)!r}"
        )
    return [word for words in source for word in words.split("+")], target


def _pick_task(dataset: str, word: str, names: Iterable[str], shorts: Mapping[str, str]) -> str:
    listed = list(dict.fromkeys(names))
    full = {shorts[name].casefold(): name for name in listed if name in shorts}
    named = [f"{name} ({shorts[name]})" if name in shorts else name for name in listed]
    return full.get(word.casefold()) or _pick(f"task of {dataset}", word, listed, named)


def _pick(what: str, word: str, names: Iterable[str], spelled: Sequence[str] | None = None) -> str:
    """Return the name that a word matches, ignoring case."""
    by_casefold = {name.casefold(): name for name in dict.fromkeys(names)}
    if word.casefold() in by_casefold:
        return by_casefold[word.casefold()]
    near = get_close_matches(word.casefold(), by_casefold, n=1)
    meant = f", did you mean {by_casefold[near[0]]!r}?" if near else ""
    raise ConfigError(
        f"unknown {what}: {word!r}{meant}; the study has "
        f"{', '.join(spelled or by_casefold.values())}"
    )


def _describe_missing_cell(cell: Cell, cells: Sequence[Cell]) -> str:
    """Return a message that the cell does not exist and lists the closest existing ones."""
    like = [c for c in cells if (c.model, c.algorithm) == (cell.model, cell.algorithm)]
    of_target = sorted({c.source for c in like if c.target == cell.target and c.source})
    of_source = sorted({c.target for c in like if c.source == cell.source})
    said = [f"{cell}: the study has no such cell"]
    if cell.target in cell.sources:
        said.append(f"{cell.target} cannot be a source of itself")
    if of_target:
        said.append(f"sources of {cell.target} with {cell.algorithm}: {', '.join(of_target)}")
    if of_source:
        said.append(f"targets of {cell.source or cell.algorithm}: {', '.join(of_source)}")
    if not of_target:
        said.append(f"targets with {cell.algorithm}: {', '.join(sorted({c.target for c in like}))}")
    return "; ".join(said)
