"""Config section ``human``: files with people's judgements of the study's replies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from tasktransfer.config.fields import Section, UserPath
from tasktransfer.config.places import expand_path


class HumanConfig(Section):
    """Human judgements for the report, in the files that `tasktransfer read-sheets` writes."""

    ratings: UserPath | None = Field(
        default=None,
        description=("CSV file of ratings on the paper's three scales; null to use no ratings"),
    )
    choices: UserPath | None = Field(
        default=None,
        description=("CSV file of choices between two replies; null to use no choices"),
    )

    @model_validator(mode="after")
    def _require_file(self) -> Self:
        if not self.files:
            raise ValueError(
                "The section contains no file. Add ratings or choices, or remove the section."
            )
        return self

    @property
    def files(self) -> Mapping[str, str]:
        """The section's files, by their config keys."""
        named = {"ratings": self.ratings, "choices": self.choices}
        return {key: path for key, path in named.items() if path is not None}

    def find_file(self, key: str) -> Path | None:
        """Return the file of a config key, or None if the section does not list one."""
        path = self.files.get(key)
        return None if path is None else Path(expand_path(path))
