"""Analysis of a transfer study: the paper's tables and figures, and the interactive heatmap.

Functions that need pandas or matplotlib are imported lazily, because the Snakefile imports this
module.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from tasktransfer.core.lazy import LazyPackage
from tasktransfer.datasets import DATASETS, PACKAGE_DATASETS
from tasktransfer.designs.transfer import columns
from tasktransfer.designs.transfer.algorithms import SHUFFLED_SOURCE
from tasktransfer.designs.transfer.config import get_transfer_config
from tasktransfer.designs.transfer.frames import (
    ABOUT,
    FRAMES,
    compares_methods,
    has_single_label_tasks,
    list_own_tasks,
)
from tasktransfer.designs.transfer.leaks import list_cross_dataset_pairs
from tasktransfer.designs.transfer.method_table import (
    declare_methods_figure,
    declare_methods_table,
    list_method_names,
)
from tasktransfer.designs.transfer.runs import (
    BASELINE,
    get_algorithm_label,
    get_cell_names,
    is_baseline,
    is_prompted,
    is_reference,
    select_transfer_runs,
)
from tasktransfer.designs.transfer.study_tables import (
    CURVE_TABLE,
    ERRORS_TABLE,
    SHARED_TABLE,
    declare_labels_table,
    declare_paper_tables,
    has_single_transfer,
    has_sources,
)
from tasktransfer.designs.transfer.uncertainty_tables import TABLES as UNCERTAINTY_TABLES
from tasktransfer.errors import format_quantity
from tasktransfer.present.columns import Row
from tasktransfer.present.declared import (
    Analysis,
    Cells,
    Figure,
    Section,
)
from tasktransfer.present.numbers import is_missing
from tasktransfer.results.frames import Frames
from tasktransfer.results.node_folders import has_valid_record
from tasktransfer.results.study import Study
from tasktransfer.selection.declared import declare_regret_figure, declare_regret_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from tasktransfer.designs.transfer import collect
    from tasktransfer.designs.transfer.figures import (
        confusions,
        curves,
        forest,
        heatmap,
        multi_source_bars,
        one_dataset,
        pair_means,
        task_properties,
    )
    from tasktransfer.designs.transfer.report import answer, blocks
else:
    figures = LazyPackage("tasktransfer.designs.transfer.figures")
    confusions, curves, forest = figures.confusions, figures.curves, figures.forest
    heatmap, multi_source_bars = figures.heatmap, figures.multi_source_bars
    one_dataset, pair_means = figures.one_dataset, figures.pair_means
    task_properties = figures.task_properties
    report = LazyPackage("tasktransfer.designs.transfer.report")
    answer, blocks = report.answer, report.blocks
    collect = LazyPackage("tasktransfer.designs.transfer").collect

DATA_TABLES = ("table1", "lengths", "overlap_data")
"""Tables that ``data stats`` counts in the dialogues."""
DATA_FILES = tuple(f"tables/{name}.{end}" for name in DATA_TABLES for end in ("csv", "parquet"))
REFERENCE_FILE = "tables/reference.parquet"
"""Table that ``data reference`` computes from the dialogues."""

QUESTION = (
    "Which dialogue tasks help which others when a model is trained on them first, and by how much?"
)
NO_TRANSFER = "How well do the study's models solve each task?"
SCRIPTS = ("heatmap_model.js", "heatmap_words.js", "heatmap_records.js", "heatmap.js")
"""Scripts in load order: each uses those before it."""
LENGTHS, MULTI_SOURCE, CONTROLS = "lengths", "multi_source", "shuffled_source"
ASKED, CURVES = "prompted", "training_curves"
BASELINES = ("references", "reference", "collapsed")
"""Frames that say, with ``transfer_runs``, which targets have baselines that have not learned."""
FIGURES: dict[str, tuple[str, tuple[str, ...], Section]] = {
    "heatmap": (
        "Improvement by transfer",
        ("transfer_runs", "missing_runs", "cells", ASKED, *BASELINES),
        "figures",
    ),
    "effects": (
        "Effect of transfer on the score, with uncertain cells faded",
        ("transfer_runs", "missing_runs", "cells", *BASELINES),
        "figures",
    ),
    "transfer_graph": ("Transfer between tasks", ("transfer_runs", "cells", *BASELINES), "figures"),
    "aggregate_transfer": ("Mean delta by source and target", ("missing_runs", "cells"), "figures"),
    MULTI_SOURCE: (
        "Several sources together, compared with each source alone",
        ("deltas", "missing_runs"),
        "figures",
    ),
    "source_type": ("Delta by type of source task", ("cells",), "figures"),
    "sample_ratio": ("Delta by sample ratio", ("sizes", "cells"), "figures"),
    "sample_count": ("Delta by sample count", ("sizes", "cells"), "figures"),
    CONTROLS: (
        "Improvement over permuted answers",
        ("transfer_runs", "missing_runs", "cells", "control_cells", *BASELINES),
        "sure",
    ),
    CURVES: ("Loss and dev score by round", (CURVES,), "made"),
    LENGTHS: ("Lengths of utterances and dialogues", (LENGTHS,), "made"),
}
"""Kind of figure → title, input frames and section. Each kind is plotted once per dataset."""
PLOTS: dict[str, Callable[[Frames, str], Canvas | None]] = {
    "heatmap": heatmap.plot_heatmap,
    "effects": heatmap.plot_effects,
    "transfer_graph": pair_means.plot_transfer_graph,
    "aggregate_transfer": pair_means.plot_aggregate_transfer,
    MULTI_SOURCE: multi_source_bars.plot_multi_source_bars,
    "source_type": task_properties.plot_source_type,
    "sample_ratio": task_properties.plot_sample_ratio,
    "sample_count": task_properties.plot_sample_count,
    CONTROLS: heatmap.plot_shuffled_source,
    CURVES: curves.plot_training_curves,
    LENGTHS: task_properties.plot_lengths,
}
"""Kind of figure → function that draws it for a dataset."""

OPEN = ("effects",)
"""Kinds of figures that the page shows without a click."""


def list_figures(dataset: str, kinds: Iterable[str]) -> Iterator[Figure]:
    """Yield the declarations of a dataset's figures."""
    for kind in kinds:
        title, reads, section = FIGURES[kind]
        yield Figure(
            f"{kind}_{dataset}",
            f"{dataset}: {title[:1].lower()}{title[1:]}",
            partial(_plot_figure, kind, dataset),
            reads,
            section=section,
            folded=kind not in OPEN,
            part=partial(one_dataset.select_dataset, dataset=dataset),
            text=kind,
            data=partial(curves.select_mean_curves, dataset) if kind == CURVES else None,
        )


def _plot_figure(kind: str, dataset: str, frames: Frames) -> Canvas | None:
    return PLOTS[kind](frames, dataset)


def _list_kinds(study: Study, dataset: str) -> list[str]:
    """Return the kinds of figures that a dataset has."""
    runs = [run for run in select_transfer_runs(study.plan) if run.about["dataset"] == dataset]
    counts = {len(run.about["sources"]) for run in runs}
    if not counts:  # the study only prompts models
        return []
    has = {
        CURVES: True,
        LENGTHS: uses_dialogue_counts(study, DATA_FILES),
        MULTI_SOURCE: any(count > 1 for count in counts),
        CONTROLS: SHUFFLED_SOURCE in get_transfer_config(study).controls and 1 in counts,
    }
    return [kind for kind in FIGURES if has.get(kind, 1 in counts)]


def uses_dialogue_counts(study: Study, tables: Collection[str]) -> bool:
    """Return whether the figures and the report use dialogue counts.

    They do if the ``tables`` exist, if the prepared dialogues exist, or if a training still has to
    prepare them. If every record is finished but there are no dialogues, they use records alone.
    """
    caches = [study.get_instances_folder(dataset) for dataset in study.config.dataset_names]
    if all(Path(cache, "manifest.json").exists() for cache in caches):
        return True
    if all(Path(study.config.results, table).exists() for table in tables):
        return True
    return not all(has_valid_record(study, stage) for stage in study.plan.stages)


FOREST_FIGURE = Figure(
    "forest",
    "Effects with 95 % intervals",
    forest.plot_effect_forest,
    ("cells", "summary", "control_summary"),
    nothing="has no pair of tasks with a delta",
    section="answer",
    planned=has_single_transfer,
    certain=False,
)
"""Figure of the answer."""
METHODS_TABLE = declare_methods_table()
REGRET_TABLE = declare_regret_table(get_algorithm_label, BASELINE)
REGRET_FIGURE = declare_regret_figure(get_algorithm_label)
MIXING_FIGURE = Figure(
    "mixing",
    "Weights of sources over training",
    curves.plot_mixing,
    ("mixing",),
    nothing="has no run in which a bandit mixes sources",
    certain=False,
)


CURVE_FIGURE = Figure(
    "learning_curve",
    "Scores by number of training dialogues",
    curves.plot_learning_curve,
    ("learning_curve",),
    nothing="has no learning curve (run `tasktransfer learning-curve`)",
    certain=False,
)


def _describe_family(cells: Sequence[Row], cell: Row) -> list[str]:
    """Return a sentence on the family of tests over which a cell's q is adjusted."""
    if cell["n_seeds"] == 1:
        return [
            "The cell has one seed, so its interval is over test dialogues only, and p and q are "
            "missing."
        ]
    several = cell["n_sources"] > 1
    family = [
        each
        for each in cells
        if each["dataset"] == cell["dataset"] and (each["n_sources"] > 1) == several
    ]
    tests = sum(not is_missing(each["q"]) for each in family)
    kind = f"{'multi' if several else 'single'}-source cell"
    return [
        f"q is p adjusted by Benjamini-Hochberg for {format_quantity(tests, kind)} of "
        f"{cell['dataset']}, with all models and algorithms. The number of significant cells among "
        f"them is {sum(each['significant'] for each in family)}."
    ]


def _list_omitted_columns(cell: Row) -> Sequence[str]:
    """Return the columns of tests that are hidden for a cell with one seed."""
    return ("p", "q", "significant") if cell.get("n_seeds") == 1 else ()


CELLS = Cells(
    "cells",
    ("dataset", "model", "algorithm", "source", "target"),
    get_cell_names,
    is_baseline,
    "seeds",
    ("score", "baseline_score"),
    collect.build_short_names,
    _describe_family,
    columns.describe_cells,
    _list_omitted_columns,
    list_method_names,
)


def build_analysis(study: Study) -> Analysis:
    """Return the frames, tables and figures of a transfer study."""
    kinds = {name: _list_kinds(study, name) for name in study.config.dataset_names}
    config = get_transfer_config(study)
    counted = uses_dialogue_counts(study, DATA_FILES)
    referred = not any(map(is_reference, study.plan.runs))
    declared = declare_analysis(
        kinds,
        selectors=bool(config.selectors),
        mixing=config.multi_source.uses_bandit,
        across=bool(list_cross_dataset_pairs(config)),
        methods=_map_methods_sections(study) if compares_methods(study) else {},
        labels=has_single_label_tasks(study),
        own=[*list_own_tasks(study)],
        question=QUESTION if has_sources(study, 1) else NO_TRANSFER,
        published=bool(
            {dataset.name for dataset in PACKAGE_DATASETS} & {*study.config.dataset_names}
        ),
    )
    left_out = {table.name for table in UNCERTAINTY_TABLES if not table.planned(study)}
    return replace(
        declared,
        tables=tuple(table for table in declared.tables if table.name not in left_out),
        data_tables=DATA_FILES if counted else (),
        reference=REFERENCE_FILE
        if referred and uses_dialogue_counts(study, (REFERENCE_FILE,))
        else "",
    )


def _map_methods_sections(study: Study) -> dict[str, Section]:
    """Map each dataset with targets to the report section that shows its methods figure.

    The section is ``answer`` for the user's own dialogues.
    """
    runs = (run for run in study.plan.runs if run.method == BASELINE or is_prompted(run))
    names = dict.fromkeys(str(run.about["dataset"]) for run in runs)
    return {name: "answer" if DATASETS[name].has_own_files else "figures" for name in names}


def _declare_confusions(dataset: str, task: str) -> Figure:
    return Figure(
        f"confusions_{dataset}_{task}",
        f"{dataset}: confused labels of {task}",
        partial(confusions.plot_confusions, dataset, task),
        ("confusions",),
        certain=False,
        part=partial(confusions.select_task_frames, dataset, task),
        text="confusions",
    )


def declare_analysis(
    kinds: Mapping[str, Iterable[str]],
    *,
    selectors: bool = False,
    mixing: bool = False,
    across: bool = False,
    methods: Mapping[str, Section] = MappingProxyType({}),
    labels: bool = False,
    own: Collection[tuple[str, str]] = (),
    question: str = QUESTION,
    published: bool = True,
) -> Analysis:
    """Declare the study's analysis with the given figures.

    Args:
        kinds: kinds of figures by dataset.
        selectors: whether source selectors are evaluated.
        mixing: whether a bandit mixes sources.
        across: whether sources may be from other datasets.
        methods: section of the figure that compares methods, by dataset; empty if none are
            compared.
        labels: whether a task has one label per input.
        own: dataset and name of these tasks, if they are the user's own.
        question: question that the report answers.
        published: whether the study has a dataset of the paper.
    """
    return Analysis(
        question=question,
        answer=answer.write_answer,
        frames=FRAMES,
        about=ABOUT,
        metadata=collect.build_study_metadata,
        dialogue_files=(*DATA_FILES, REFERENCE_FILE),
        tables=(
            *((METHODS_TABLE,) if methods else ()),
            *declare_paper_tables(published=published),
            *((SHARED_TABLE,) if across else ()),
            *((REGRET_TABLE,) if selectors else ()),
            *((declare_labels_table(folded=not own),) if labels else ()),
            *((ERRORS_TABLE, CURVE_TABLE) if own else ()),
            *UNCERTAINTY_TABLES,
        ),
        figures=(
            *(
                replace(declare_methods_figure(name), section=section, folded=section != "answer")
                for name, section in methods.items()
            ),
            FOREST_FIGURE,
            *(figure for name, names in kinds.items() for figure in list_figures(name, names)),
            *((MIXING_FIGURE,) if mixing else ()),
            *((REGRET_FIGURE,) if selectors else ()),
            *(_declare_confusions(*task) for task in own),
            *((CURVE_FIGURE,) if own else ()),
        ),
        captions="transfer",
        blocks=blocks.build_blocks,
        missing=blocks.list_missing_results,
        facts=blocks.list_facts,
        styles=("designs/transfer/report/heatmap.css",),
        scripts=tuple(f"designs/transfer/report/{name}" for name in SCRIPTS),
        cells=CELLS,
    )
