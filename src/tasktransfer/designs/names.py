"""Names of datasets and tasks in a config, including those of plugins.

They are looked up when the config is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from tasktransfer.config.fields import DISTINCT, LIST
from tasktransfer.core.validation import Schema, describe_unknown
from tasktransfer.datasets import DATASETS
from tasktransfer.tasks.card import Task


@dataclass(frozen=True, slots=True)
class OneOf:
    """Pydantic annotation for a name from a catalogue.

    Args:
        what: kind of name, for messages.
        names: dataset → allowed names. The dataset is that of the validated section (``dataset`` in
            the context), or None if it is open.
        hint: (dataset, name) → sentence with the remedy for a likely mistake, or None.
        listed: true if the JSON schema allows only the listed names; false if a config may add
            some.
    """

    what: str
    names: Callable[[str | None], Collection[str]]
    hint: Callable[[str | None, str], str | None] = lambda dataset, name: None
    listed: bool = True

    def check(self, value: str, info: core_schema.ValidationInfo[Any]) -> str:
        """Return the value if it is an allowed name. Raises ValueError if it is not."""
        dataset = (info.context or {}).get("dataset")
        names = self.names(dataset)
        if value not in names:
            hint = self.hint(dataset, value)
            raise ValueError(describe_unknown(self.what, value, tuple(names), hint, owner=dataset))
        return value

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.with_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> Schema:
        return handler(schema) | {"enum" if self.listed else "examples": list(self.names(None))}


def get_tasks(dataset: str) -> Mapping[str, Task]:
    """Return a mapping from name to card for the tasks of a dataset."""
    return DATASETS[dataset].tasks


def _list_datasets(dataset: str | None) -> Collection[str]:
    return DATASETS


def _list_tasks(dataset: str | None) -> Collection[str]:
    if dataset is not None:
        return get_tasks(dataset)
    return list(dict.fromkeys(task for name in DATASETS for task in get_tasks(name)))


def _find_task_hint(dataset: str | None, name: str) -> str | None:
    """Return the remedy for a short name or for another dataset's task, otherwise None."""
    for home in DATASETS:
        if dataset not in (None, home) and name in get_tasks(home):
            return f"It is a task of {home}. List the task under datasets.{home}."
    for searched in DATASETS if dataset is None else (dataset,):
        for task in get_tasks(searched).values():
            if task.short.casefold() == name.casefold():
                return f"Write {task.name!r}."
    return None


DatasetName = Annotated[str, OneOf("dataset", _list_datasets, listed=False)]
TaskName = Annotated[str, OneOf("task", _list_tasks, _find_task_hint)]
TaskNames = Annotated[tuple[TaskName, ...], LIST, Field(min_length=1), DISTINCT]
AnyTaskName = Annotated[str, OneOf("task", _list_tasks, _find_task_hint, listed=False)]
AnyTaskNames = Annotated[tuple[AnyTaskName, ...], LIST, Field(min_length=1), DISTINCT]
"""Task names of any dataset, including datasets that a config declares."""
