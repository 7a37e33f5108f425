"""The type of a design.

A design turns a config into a plan, and records into tables and figures. It consists of data and
plain functions. The code that computes (trainer, fits, evaluations) gets nodes and does not depend
on designs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tasktransfer.config import CommonConfig
from tasktransfer.core.identity import Entry
from tasktransfer.core.plan import Plan
from tasktransfer.datasets.dataset import Dataset
from tasktransfer.present.declared import Analysis
from tasktransfer.results.revisions import Revisions
from tasktransfer.results.study import Study
from tasktransfer.selection.selector import Selector

if TYPE_CHECKING:  # these modules import packages that the Snakefile must not import
    from tasktransfer.data.recipes import Recipe
    from tasktransfer.fits import Learner
    from tasktransfer.metrics.measures import Measure


@dataclass(frozen=True, slots=True)
class Shown:
    """A file in Snakemake's own report (``snakemake --report``).

    ``caption`` is the name of a file in ``workflow/report``; empty if there is none.
    """

    file: str
    category: str
    caption: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outputs:
    """Files that are created from a study's records, relative to its results folder.

    The workflow's rules and the code that writes the files both use this list, which follows from
    the design's declarations (``designs.outputs``).

    Args:
        tables: files of the command ``collect``.
        statistics: files of the command ``statistics``, computed from the tables.
        data_tables: files of ``data stats``, computed from the dialogues.
        reference: file of ``data reference``, computed from the dialogues; empty if there is none.
        figures: figures of the command ``figures``.
        printed: printed tables of the command ``figures``.
        shown: files in Snakemake's own report.
        report: the page.
        version: digest of the tables' columns and versions; if it changes, they are built again.
    """

    tables: tuple[str, ...]
    statistics: tuple[str, ...]
    data_tables: tuple[str, ...]
    reference: str
    figures: tuple[str, ...]
    printed: tuple[str, ...]
    shown: tuple[Shown, ...]
    report: str
    version: str


@dataclass(frozen=True)
class Design:
    """A study's design.

    Args:
        name: name of the design, as in configs.
        config: class that validates its config files.
        kinds: kinds of stages, as in paths and rules of the workflow.
        plan: (config, revisions of data and models) → plan.
        analysis: study → its frames, tables, figures and the answer (``present.declared``).
        choose: (study, name) makes a choice that the plan waits for, and writes it to
            ``study.choice_file``.
        facts: config → further facts for the provenance of each training's record.
        substitutes: config → substitutes for unavailable inputs, which every record lists.
        notes: config → lines that ``validate`` adds for a valid config.
        refuse: raises for a study whose data cannot be used together, before anything runs.
        warnings: finished study → warnings about its results, which ``run`` prints at its end.
        advice: finished study → sentences on its results, which ``run`` prints at its end.
        shortages: study → messages, with remedies, on prepared data that are too few.
        recipes: the design's recipes of derived data, by name.
        learners: the design's learners of fits, by name.
        measures: the design's measures of rows (``Measure.of_rows``), by name.
        selectors: the design's selectors of sources, by name.
        items: study → the items that a user's own system answers (``config.brought``).
        versions: versions of entries above 1, for example ``{("recipe", "my_recipe"): 2}``. Raise
            the version if the code changes; then every node that uses the entry is recomputed.
        datasets: datasets that only this design reads; they exist if a config names the design.
        grows_with: config keys that multiply the size of the plan.
        rules: files in ``workflow/rules`` that only this design needs.
        recipes_first: recipes whose data are built before the first training, because they refuse
            data that are too few.
    """

    name: str
    config: type[CommonConfig]
    kinds: tuple[str, ...]
    plan: Callable[[Any, Revisions], Plan]
    analysis: Callable[[Study], Analysis]
    choose: Callable[[Study, str], None] | None = None
    facts: Callable[[Any], Mapping[str, str]] = lambda _: {}
    substitutes: Callable[[Any], Mapping[str, str]] = lambda _: {}
    notes: Callable[[Any], Sequence[str]] = lambda _: ()
    refuse: Callable[[Study], None] = lambda _: None
    warnings: Callable[[Study], Sequence[str]] = lambda _: ()
    advice: Callable[[Study], Sequence[str]] = lambda _: ()
    shortages: Callable[[Study], Sequence[str]] = lambda _: ()
    recipes: Mapping[str, Recipe] = field(default_factory=dict)
    learners: Mapping[str, Learner] = field(default_factory=dict)
    measures: Mapping[str, Measure] = field(default_factory=dict)
    selectors: Mapping[str, Selector] = field(default_factory=dict)
    items: Callable[[Study], Iterable[Mapping[str, Any]]] | None = None
    versions: Mapping[Entry, int] = field(default_factory=dict)
    datasets: tuple[Dataset, ...] = ()
    grows_with: tuple[str, ...] = ("seeds", "models")
    rules: tuple[str, ...] = ()
    recipes_first: tuple[str, ...] = ()
