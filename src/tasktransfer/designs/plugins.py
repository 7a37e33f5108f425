"""Python files and packages that a study names under ``plugins``: imported before it is checked."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import TypeVar

from tasktransfer import datasets
from tasktransfer.config import Document
from tasktransfer.config.places import on_disk
from tasktransfer.core.digests import digest_of
from tasktransfer.core.validation import Problem, at, show
from tasktransfer.designs.transfer.selectors import registry as selectors
from tasktransfer.errors import ConfigError

Design = TypeVar("Design")


def load_plugins(document: Document, design: type[Design], add: Callable[[Design], None]) -> None:
    """Import the plugins of a config, and add their datasets and designs.

    A plugin that this process has imported already is not run again.

    Raises:
        ConfigError: a plugin is missing, cannot be imported or adds what cannot be; with file,
            line, key, path and remedy, all plugins at once.
    """
    named = document.get("plugins")
    problems = []
    for index, plugin in enumerate(named if isinstance(named, list) else ()):
        if not isinstance(plugin, str):
            continue  # told when the config is checked
        try:
            module = _imported(plugin)
            for dataset in getattr(module, "DATASETS", ()):
                datasets.add(dataset)
            for selector in getattr(module, "SELECTORS", ()):
                selectors.add(selector)
            if hasattr(module, "DESIGN"):
                add(_of_type(module.DESIGN, design))
        except ConfigError as error:
            problems.append(Problem(at("plugins", index), str(error)))
    if problems:
        raise document.error(problems)


def _imported(where: str) -> ModuleType:
    """The module of a file, or of a folder with an ``__init__.py``."""
    path = Path(on_disk(where)).resolve()
    file = path / "__init__.py" if path.is_dir() else path
    if file.suffix != ".py" or not file.is_file():
        raise ConfigError(
            f"{show(where)} is no Python file or package: give a .py file, or a folder with an "
            f"__init__.py, as seen from {Path.cwd()}"
        )
    name = f"tasktransfer_plugin_{path.stem}_{digest_of(str(file))[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    inside = [str(path)] if path.is_dir() else None
    spec = spec_from_file_location(name, file, submodule_search_locations=inside)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{show(where)} cannot be imported: give a .py file")
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a script that ends itself would end us in silence
        del sys.modules[name]
        last = extract_tb(error.__traceback__)[-1]
        raise ConfigError(
            f"{show(where)} cannot be imported ({type(error).__name__}: {error}; "
            f"{last.filename}:{last.lineno}): mend it, or remove it from plugins"
        ) from error
    return module


def _of_type(value: object, design: type[Design]) -> Design:
    if not isinstance(value, design):
        raise ConfigError(f"its DESIGN is {show(value)}: make it a {design.__name__}")
    return value
