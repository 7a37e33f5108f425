"""What the report says below each figure. ``workflow/report`` has the same texts for Snakemake's
own report; a test holds them together."""

from __future__ import annotations

CAPTIONS: dict[str, str] = {
    "transfer_graph": (
        "Tasks are nodes, their shape the type of the task; an arrow leads from source to "
        "target. Its width and colour are the mean delta over algorithms; negative transfer is "
        "dashed as well as red. Only the strongest arrows are drawn: the threshold stands below "
        "the panels."
    ),
    "heatmap": (
        "Rows are sources, columns targets. The diagonal is the baseline's score, every other "
        "cell the relative improvement over it in per cent, a mean over seeds: blue is better, "
        "red worse. Colours end at ±100 % or before, and a filled corner marks what lies beyond. "
        "Cells that differ from 0 after false-discovery control (q ≤ 0.05) have a bold frame; a "
        "dotted one stands for one training only: it would by its test instances, and other "
        "seeds are unknown. Missing cells are hatched dark, cells not in the study pale."
    ),
    "sample_ratio": (
        "A point is the mean over seeds of one algorithm, source and target, by the type of the "
        "target task; the horizontal axis is the number of the source's training samples over "
        "that of the target's. Lines are least squares on the logarithm of the ratio, none "
        "through fewer than three distinct ratios. Their bands are 95 % intervals that resample "
        "tasks whole: each task is left out in turn, with all its cells as source and as target."
    ),
    "sample_count": (
        "A point is a model's mean delta over all transfer whose source (or target) has that "
        "many training samples, with its 95 % interval. Lines are least squares on the "
        "logarithm of the count, none through fewer than three distinct counts. Their bands are "
        "95 % intervals that resample tasks whole: each task is left out in turn, with all its "
        "cells as source and as target."
    ),
    "lengths": (
        "Shares of all utterances and of all dialogues that have a length. An axis ends where "
        "99 % are shown; the panel says how many are longer."
    ),
    "aggregate_transfer": (
        "Rows are sources, columns targets. A cell has the mean delta over models and "
        "algorithms and, below it, in how many of them the target improved. The last column has "
        "the mean of each source, the last row that of each target. A filled corner marks what "
        "lies beyond the colours. Missing cells are hatched dark, cells not in the study pale."
    ),
    "source_type": (
        "Small points are pairs of a source and a target, means over seeds, spread sideways so "
        "that they can be told apart; large marks are their means with 95 % intervals."
    ),
    "multi_source": (
        "A solid bar is the delta of the run on all sources at once, a mean over seeds; the "
        "pale one on its left is the mean delta of the same sources one at a time."
    ),
    "over_shuffled": (
        "Rows are sources, columns targets. The diagonal is the baseline's score, every other "
        "cell the delta of the transfer minus the delta of the same source trained with permuted "
        "labels, in points, a mean over seeds: what the source's labels give beyond its texts and "
        "the training itself. Colours and frames are as in the heatmap of improvements."
    ),
}
"""Name of a figure as in ``figures.FIGURES`` → what it shows, in full."""
