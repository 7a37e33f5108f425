"""What a design is, whatever it studies.

A design turns a config into a plan, and records into its tables and figures. It is data and plain
functions. Whatever computes (trainer, fits, evaluations) is told nodes and knows no design.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tasktransfer.config import CommonConfig
from tasktransfer.core.plan import Plan
from tasktransfer.core.selectors import Selector
from tasktransfer.core.versions import Entry
from tasktransfer.datasets.dataset import Dataset
from tasktransfer.present.declared import Presentation
from tasktransfer.results.revisions import Revisions
from tasktransfer.results.study import Study
from tasktransfer.tables import COMMON_FILES

if TYPE_CHECKING:  # they import what the Snakefile must not
    from tasktransfer.data.recipes import Recipe
    from tasktransfer.fits import Learner
    from tasktransfer.metrics.measures import Measure


@dataclass(frozen=True, slots=True)
class Shown:
    """A file that ``snakemake --report`` shows. ``caption``: a name in ``workflow/report``; empty:
    none."""

    file: str
    category: str
    caption: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outputs:
    """The files that come of a study's records, relative to its results folder: the one list that
    the workflow's rules and what writes the files go by.

    A design names the first four. ``tables``: of ``collect``; by themselves those that every design
    has. ``statistics``: of ``statistics``,
    from the tables. ``data_tables``: of ``data stats``, from the dialogues, as far as these are
    known or have to be. ``reference``: of ``data reference``, likewise; empty: none.

    The others follow from what it declares (``designs.outputs``): ``figures`` and ``printed``: of
    ``figures``.
    ``shown``: those that ``snakemake --report`` shows. ``report``: one page; empty: none.
    """

    tables: tuple[str, ...] = COMMON_FILES
    statistics: tuple[str, ...] = ()
    data_tables: tuple[str, ...] = ()
    reference: str = ""
    figures: tuple[str, ...] = ()
    printed: tuple[str, ...] = ()
    shown: tuple[Shown, ...] = ()
    report: str = ""


def nothing_to_do(study: Study) -> None:
    """What a command does whose outputs the design has none of: the workflow may call it."""
    print(f"{study.config_file}: design {study.config.design} makes none of these: nothing to do")


@dataclass(frozen=True)
class Design:
    """A study's design.

    ``config``: the class that its config files are checked by. ``kinds``: of stages, as paths and
    rules of the workflow name them. ``plan``: (config, revisions
    of data and models) → plan. ``outputs``: study → its files.
    ``collect``: (study, complete) makes the tables, all or none if ``complete``, and again when
    ``tables_version`` has changed; ``statistics`` makes its own. ``shown``: study → what of it is
    shown: printed tables, figures, the sentences of its answer (``present.declared``). ``choose``:
    (study, name) makes a choice that the plan waits for and writes it to ``study.choice_file``.
    ``explain``: (study, words of the command line, as JSON) → text, of words that name no printed
    table. ``facts``: config → what else
    the provenance of each training's record says. ``stand_ins``: config → input that could not be
    had: what stands in for it, as every record says. ``notes``: config → lines that ``validate``
    adds for a config that can be run. ``refuse``: raises for a study whose data cannot be used
    together, before anything is run. ``shortages``: study → what its prepared data have too few of,
    messages with remedies. ``recipes`` of derived data, ``learners`` of fits and
    ``measures`` of rows (``Measure.of_rows``): those that this design brings, by name.
    ``recipes_first``: recipes whose data are made before the first training, since they refuse data
    that are too few.
    ``versions``: of them, 1 of one that is not named, as ``{("recipe", "my_recipe"): 2}``: raise it
    with the code, and whatever uses the entry is made anew. ``selectors`` of sources, by name.
    ``datasets``: those that only this design reads, which are there when a config names it.
    ``grows_with``: keys of a config that a plan is as many times as large as.
    ``of_dialogues``: files of tables that are made of the dialogues themselves, which a pack takes
    with it. ``rules``: files in ``workflow/rules`` that only this design needs.
    """

    name: str
    config: type[CommonConfig]
    kinds: tuple[str, ...]
    plan: Callable[[Any, Revisions], Plan]
    collect: Callable[[Study, bool], None]
    outputs: Callable[[Study], Outputs] = lambda _: Outputs()
    statistics: Callable[[Study], None] = nothing_to_do
    shown: Callable[[Study], Presentation] | None = None
    choose: Callable[[Study, str], None] | None = None
    explain: Callable[[Study, Sequence[str], bool], str] | None = None
    facts: Callable[[Any], Mapping[str, str]] = lambda _: {}
    stand_ins: Callable[[Any], Mapping[str, str]] = lambda _: {}
    notes: Callable[[Any], Sequence[str]] = lambda _: ()
    refuse: Callable[[Study], None] = lambda _: None
    shortages: Callable[[Study], Sequence[str]] = lambda _: ()
    recipes: Mapping[str, Recipe] = field(default_factory=dict)
    learners: Mapping[str, Learner] = field(default_factory=dict)
    measures: Mapping[str, Measure] = field(default_factory=dict)
    selectors: Mapping[str, Selector] = field(default_factory=dict)
    versions: Mapping[Entry, int] = field(default_factory=dict)
    datasets: tuple[Dataset, ...] = ()
    grows_with: tuple[str, ...] = ("seeds", "models")
    rules: tuple[str, ...] = ()
    tables_version: int = 1
    of_dialogues: tuple[str, ...] = ()
    recipes_first: tuple[str, ...] = ()
