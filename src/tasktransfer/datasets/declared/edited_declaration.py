"""A declaration that a user has edited, which is read from a file and tried on its dialogues."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from tasktransfer.config import yaml_file
from tasktransfer.core.validation import Problem, list_problems
from tasktransfer.datasets.declared.section import Declaration
from tasktransfer.datasets.declared.source import open_source
from tasktransfer.datasets.declared.survey import get_survey
from tasktransfer.errors import ConfigError


class EditedDeclaration(NamedTuple):
    """The only dataset of a file: its name, its section as it is written, and its declaration."""

    name: str
    section: dict[str, Any]
    declaration: Declaration


def read_declaration(path: Path) -> EditedDeclaration:
    """Read the declaration of a dataset in the format that ``data check`` prints.

    Raises:
        ConfigError: the file cannot be read, does not have one dataset with files, or a key of the
            dataset is wrong. The message names file, line, key and remedy.
    """
    document = yaml_file.read(path)
    if document.problems:
        raise document.build_error(document.problems)
    value = document.value
    datasets = value.get("datasets") if isinstance(value, dict) else None
    if not isinstance(datasets, dict) or len(datasets) != 1 or len(value) != 1:
        raise ConfigError(
            f"{path}: The file must contain one dataset under the key datasets, and no other key. "
            f"Write the output of `tasktransfer data check FILE` to {path}, and edit that file."
        )
    ((name, section),) = datasets.items()
    key = f"datasets.{name}"
    try:
        declaration = Declaration.model_validate(section)
    except ValidationError as error:
        problems = list_problems(error, section, Declaration.model_json_schema, key)
        raise document.build_error(problems) from None
    if declaration.files is None:
        remedy = "Replace the key hub by files, or write the config of a study by hand."
        raise document.build_error([Problem(f"{key}.hub", f"The dataset has no files. {remedy}")])
    return EditedDeclaration(str(name), section, declaration)


def survey_declaration(edited: EditedDeclaration) -> list[str]:
    """Read all dialogues and answers of a declared dataset, as a study does, and return notes.

    Raises:
        DataError: a file, a row or an answer cannot be read. The message names file, line,
            value and remedy.
    """
    source = open_source(edited.declaration, f"datasets.{edited.name}")
    return get_survey(edited.declaration, source, edited.name, "", None).notes
