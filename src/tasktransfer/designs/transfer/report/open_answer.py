"""The part of the answer that the page shows without a click, after the answer's first sentence.

It says which algorithm raises the mean score of each dataset, and which baselines have not learned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import pandas as pd
from markupsafe import Markup

from tasktransfer.designs.transfer.report.average_changes import describe_average_changes
from tasktransfer.designs.transfer.report.first_source import FEW_TARGETS
from tasktransfer.designs.transfer.report.learned import (
    compare_with_best_reference,
    format_unlearned_list,
)
from tasktransfer.designs.transfer.report.without_transfer import has_transfer
from tasktransfer.present.declared import Block
from tasktransfer.results.frames import Frames

MOST = 3
"""Maximum number of datasets and models with a sentence of their own."""


def build_open_answer(frames: Frames) -> list[Block]:
    """Return the blocks that the report shows unfolded below its answer.

    A study of one or two targets has no sentences on algorithms, because its answer is about
    sources.
    """
    compared = compare_with_best_reference(frames)
    has_sources = has_transfer(frames["transfer_runs"], frames["missing_runs"])
    unlearned = format_unlearned_list(
        compared, _map_short_names(frames, compared), has_sources=has_sources
    )
    blocks = [Block(text=unlearned)] if unlearned else []
    return [*_list_average_changes(frames), *blocks]


def _list_average_changes(frames: Frames) -> Iterator[Block]:
    cells = frames["cells"]
    singles = cells[(cells["n_sources"] == 1) & cells["delta"].notna()]
    if len(singles[["dataset", "target"]].drop_duplicates()) <= FEW_TARGETS:
        return
    sentences = [*describe_average_changes(frames["summary"])]
    for sentence in sentences[:MOST]:
        yield Block(text=sentence)
    if len(sentences) > MOST:
        link = Markup('<a href="#summary-caption">Comparison of the algorithms</a>')
        yield Block(text=Markup("The table “{}” has all datasets and models.").format(link))


def _map_short_names(frames: Frames, compared: pd.DataFrame) -> Mapping[tuple[str, str], str]:
    """Map each (dataset, task) to its declared short name, unless two tasks share the name."""
    if compared.empty:
        return {}
    shorts: dict[tuple[str, str], str] = {}
    for dataset, rows in compared.groupby("dataset", sort=False):
        names = {task: frames.metadata.shorts.get(task, task) for task in rows["target"]}
        counts = Counter(names.values())
        for task, name in names.items():
            shorts[str(dataset), task] = name if counts[name] == 1 else task
    return shorts
