"""Import of a config's plugins (Python files and packages), before the config is validated.

Errors in a plugin are reported with the plugin's file and line, because a traceback of this package
would not help the plugin's author.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from tasktransfer import datasets
from tasktransfer.config import Document
from tasktransfer.config.places import expand_path
from tasktransfer.core.identity import compute_digest
from tasktransfer.core.validation import Problem, extend_path
from tasktransfer.datasets.dataset import Dataset
from tasktransfer.errors import (
    PLUGIN_PREFIX,
    ConfigError,
    TaskTransferError,
    describe_error,
    find_plugin_line,
    format_value,
)
from tasktransfer.selection import methods
from tasktransfer.selection.selector import Selector

Design = TypeVar("Design")


def load_plugins(document: Document, design: type[Design], add: Callable[[Design], None]) -> None:
    """Import the plugins of a config, and add their datasets and designs.

    A plugin that this process has imported already is not run again.

    Raises:
        ConfigError: a plugin is missing, cannot be imported, or adds invalid entries. The message
            covers all plugins, with file, line, key, path and remedy.
    """
    named = document.get("plugins")
    problems = []
    for index, plugin in enumerate(named if isinstance(named, list) else ()):
        if not isinstance(plugin, str):
            continue  # reported when the config is validated
        try:
            module = _import_plugin(plugin)
            with _wrap_errors(f"{format_value(plugin)} adds an invalid entry", module):
                _add_entries(module, format_value(plugin), design, add)
        except ConfigError as error:
            problems.append(Problem(extend_path("plugins", index), str(error)))
    if problems:
        raise document.build_error(problems)


def _add_entries(
    module: ModuleType, plugin: str, design: type[Design], add: Callable[[Design], None]
) -> None:
    """Add a plugin's datasets, selectors and design.

    Raises:
        ConfigError: the plugin has none of them, or one of the wrong type.
    """
    names = [name for name in ("DATASETS", "SELECTORS", "DESIGN") if hasattr(module, name)]
    if not names:
        raise ConfigError(
            f"{plugin}: The plugin adds nothing. Define DATASETS, SELECTORS or DESIGN in the "
            "plugin, or remove it from plugins."
        )
    lists = {"DATASETS": Dataset, "SELECTORS": Selector}
    for name, kind in lists.items():
        values = getattr(module, name, ())
        if not isinstance(values, list | tuple):
            raise ConfigError(
                f"{plugin}: The value of {name} is {format_value(values)}, but it must be a list. "
                f"Make {name} a list."
            )
        for value in values:
            if not isinstance(value, kind):
                raise ConfigError(
                    f"{plugin}: The list {name} contains {format_value(value)}, which is not a "
                    f"{kind.__name__}. Replace or remove this item."
                )
    for dataset in getattr(module, "DATASETS", ()):
        datasets.add_dataset(dataset)
    for selector in getattr(module, "SELECTORS", ()):
        methods.register_selector(selector)
    if "DESIGN" in names:
        if not isinstance(module.DESIGN, design):
            raise ConfigError(
                f"{plugin}: The value of DESIGN is {format_value(module.DESIGN)}, but it must be "
                f"a {design.__name__}. Make DESIGN a {design.__name__}."
            )
        add(module.DESIGN)


def _import_plugin(where: str) -> ModuleType:
    """Import a Python file, or a folder with an ``__init__.py``, and return its module."""
    path = Path(os.path.realpath(expand_path(where)))  # Path.resolve raises for a loop of links
    file = path / "__init__.py" if path.is_dir() else path
    if file.suffix != ".py" or not file.is_file():
        raise ConfigError(
            f"{format_value(where)}: The path is not a Python file or package. Specify a .py file, "
            f"or a folder with an __init__.py, relative to {Path.cwd()}."
        )
    # With a dot in the name, the part before it would be a package.
    name = (
        f"{PLUGIN_PREFIX}{re.sub(r'[^0-9A-Za-z_]', '_', path.stem)}_{compute_digest(str(file))[:8]}"
    )
    if name in sys.modules:
        return sys.modules[name]
    inside = [str(path)] if path.is_dir() else None
    spec = spec_from_file_location(name, file, submodule_search_locations=inside)
    if spec is None or spec.loader is None:
        raise ConfigError(
            f"{format_value(where)}: The file cannot be imported. Specify a .py file."
        )
    module = sys.modules[name] = module_from_spec(spec)
    try:
        with _wrap_errors(f"{format_value(where)} cannot be imported", module):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


@contextmanager
def _wrap_errors(what: str, module: ModuleType) -> Iterator[None]:
    """Turn any error in the block into a ``ConfigError`` that names the plugin's line.

    Without this, a plugin that raises SystemExit would end the command silently.
    """
    try:
        yield
    except (TaskTransferError, KeyboardInterrupt):
        raise
    except BaseException as error:
        line = find_plugin_line(error) or str(module.__file__)
        raise ConfigError(
            f"{what} ({describe_error(error)}; {line}). Fix the plugin, or remove it from plugins."
        ) from error
