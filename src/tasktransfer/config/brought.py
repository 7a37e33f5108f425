"""The section ``brought``: ratings or replies of a user's own system, read from a file."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from tasktransfer.config.fields import LIST, ModelName, Section, UserPath
from tasktransfer.core.validation import Problem, raise_problems


class BroughtConfig(Section):
    """A system of the user, with its answers to the study's items."""

    name: ModelName = Field(description="name of the system in tables and figures")
    file: UserPath = Field(
        description=(
            "JSONL file with the system's answer to each item that `tasktransfer items` writes"
        )
    )


def _check_unique_names(brought: tuple[BroughtConfig, ...]) -> tuple[BroughtConfig, ...]:
    """Return the user's own systems, or raise ValueError if two have the same name."""
    names = [system.name for system in brought]
    raise_problems(
        (f"[{index}].name", f"Another entry has the name {name!r}, too. Choose another name.")
        for index, name in enumerate(names)
        if name in names[:index]
    )
    return brought


Brought = Annotated[tuple[BroughtConfig, ...], LIST, AfterValidator(_check_unique_names)]


def find_name_conflicts(brought: Any, used: Collection[str]) -> Iterator[Problem]:
    """Yield a problem for each of the user's own systems that is named like a method."""
    for index, system in enumerate(brought):
        if system.name in used:
            problem = f"{system.name!r} is the name of a method of the study. Choose another name."
            yield Problem(f"brought[{index}].name", problem)
