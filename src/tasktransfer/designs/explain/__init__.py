"""Explanation of a number, of runs or of a node: where it is from, and how to repeat it."""

from tasktransfer.designs.explain.explanation import Explanation, as_json
from tasktransfer.designs.explain.question import explain
from tasktransfer.designs.explain.text import as_text

__all__ = ["Explanation", "as_json", "as_text", "explain"]
