"""Input of a study's tables, figures and sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files

import pandas as pd

from tasktransfer.present.declared import Presentation
from tasktransfer.results.metadata import Metadata
from tasktransfer.results.study import Study


@dataclass(frozen=True)
class View(Mapping[str, pd.DataFrame]):
    """A study's frames by name.

    ``study`` has the config and plan. ``metadata`` has the facts in the tables' footers, and the
    order of names.
    """

    study: Study
    frames: Mapping[str, pd.DataFrame]
    metadata: Metadata

    def __getitem__(self, name: str) -> pd.DataFrame:
        return self.frames[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.frames)

    def __len__(self) -> int:
        return len(self.frames)

    def only(self, names: Collection[str]) -> View:
        """Return the view with only the named frames."""
        return replace(self, frames={name: self.frames[name] for name in names})


def read_view(study: Study, shown: Presentation) -> View:
    """Read a study's tables.

    Raises:
        RecordError: a table is absent or damaged.
    """
    frames, metadata = shown.read(study)
    return View(study, frames, metadata)


def read_caption(shown: Presentation, name: str, given: str) -> str:
    """Return the caption of a table or figure; Snakemake's own report has the same text."""
    if given or not shown.captions:
        return given
    folder = files("tasktransfer").joinpath("workflow", "report", shown.captions)
    return " ".join(folder.joinpath(f"{name}.rst").read_text("utf-8").split())
