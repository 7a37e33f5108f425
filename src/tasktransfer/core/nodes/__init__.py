"""The nodes of a plan: data, stages, fits and evaluations, and what combines them.

A node's identity is the digest of what changes its numbers, and of nothing else: no paths, no
machine, no micro-batch size. Equal nodes are one node, whatever study asks for them. A field at its
default stays out of the identity, so that a new field leaves old digests alone. ``kind`` and
``label`` are for paths and people. Pure, standard library only: the Snakefile imports this.
"""

from tasktransfer.core.nodes.data import Data
from tasktransfer.core.nodes.evaluation import Evaluation, Fit, Outcome, Pool
from tasktransfer.core.nodes.identity import SHORT, Settings
from tasktransfer.core.nodes.stage import Merge, Round, Stage, Start, with_all_selections

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
    "with_all_selections",
]
