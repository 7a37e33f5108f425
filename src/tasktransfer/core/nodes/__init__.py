"""The nodes of a plan: data, stages, fits and evaluations, and the types that connect them.

A node's digest covers everything that changes its numbers and nothing else: no paths, no machine,
no micro-batch size. Studies share equal nodes. A field at its default is not part of the identity,
so that a new field does not change old digests. ``kind`` and ``label`` are for paths and people.
The Snakefile imports these modules: they use the standard library only.
"""

from tasktransfer.core.identity import SHORT, Settings
from tasktransfer.core.nodes.data import Data
from tasktransfer.core.nodes.evaluation import Evaluation, Fit, Outcome, Pool
from tasktransfer.core.nodes.stage import Merge, Round, Stage, Start, merge_selections

Node = Data | Stage | Fit | Evaluation

__all__ = [
    "SHORT",
    "Data",
    "Evaluation",
    "Fit",
    "Merge",
    "Node",
    "Outcome",
    "Pool",
    "Round",
    "Settings",
    "Stage",
    "Start",
    "merge_selections",
]
