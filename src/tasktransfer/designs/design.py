"""What a design is, whatever it studies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tasktransfer.core.plan import Plan
from tasktransfer.results.revisions import Revisions


@dataclass(frozen=True)
class Design:
    """A study's design: how its config becomes a plan.

    ``plan``: (config, revisions of data and models) → plan. ``facts``: config → what else the
    provenance of each record says.
    """

    name: str
    plan: Callable[[Any, Revisions], Plan]
    facts: Callable[[Any], Mapping[str, str]] = lambda _: {}
