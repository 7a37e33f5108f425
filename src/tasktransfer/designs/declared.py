"""Datasets that a config declares.

They are created before the rest of the config is validated, because it may refer to their tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tasktransfer import datasets
from tasktransfer.config import Document
from tasktransfer.config.places import expand_path
from tasktransfer.core.validation import Problem
from tasktransfer.datasets.declared.reader import build_dataset
from tasktransfer.datasets.declared.section import Declaration, is_declaration
from tasktransfer.errors import ConfigError

CACHE_FOLDER = "data/declared"
"""Folder in the study's results that caches surveys of declared datasets."""


def declare_datasets(document: Document) -> None:
    """Register the datasets that a config declares in this process.

    Invalid declarations are skipped here; they are reported when the whole config is validated.

    Raises:
        ConfigError: a dataset has the name of another dataset.
        DataError: files are missing or damaged.
    """
    declared = []
    for name, section in extract_declarations(document).items():
        try:
            declaration = Declaration.model_validate(section)
        except ValidationError:
            continue
        declared.append(build_dataset(name, declaration, _find_cache_folder(document)))
    try:
        datasets.replace_declared_datasets(declared)
    except ConfigError as error:
        raise document.build_error([Problem("datasets", str(error))]) from None


def extract_declarations(document: Document) -> dict[str, Mapping[str, Any]]:
    """Map each declared dataset to its declaration, without keys of the transfer design."""
    sections = document.get("datasets")
    return {
        name: {key: value for key, value in section.items() if key in Declaration.model_fields}
        for name, section in (sections.items() if isinstance(sections, Mapping) else ())
        if isinstance(name, str) and is_declaration(section)
    }


def _find_cache_folder(document: Document) -> Path:
    results = document.get("results")
    return Path(expand_path(results) if isinstance(results, str) else "results", CACHE_FOLDER)
