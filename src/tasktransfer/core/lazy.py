"""Modules that are imported when one of their functions is called.

The Snakefile imports each design's declarations at every start. They name functions of modules that
need pandas or matplotlib, in a way that a type checker can follow::

    if TYPE_CHECKING:
        from tasktransfer.designs.probes import printed
    else:
        printed = LazyPackage("tasktransfer.designs.probes").printed

    Table("table3", "Table 3", printed.table3, ...)
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


class LazyPackage:
    """A package whose attributes are lazy modules."""

    def __init__(self, package: str) -> None:
        self._package = package

    def __getattr__(self, module: str) -> LazyModule:
        """Return a module of the package, without importing it."""
        return LazyModule(f"{self._package}.{module}")


class LazyModule:
    """A module whose attributes are functions; calling one of them imports the module."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a function that, when called, imports and calls the module's function.

        Raises:
            AttributeError: the name is a special one, such as ``__wrapped__``.
        """
        if name.startswith("__"):
            raise AttributeError(name)
        module = self._module

        def call(*arguments: Any, **named: Any) -> Any:
            return getattr(import_module(module), name)(*arguments, **named)

        call.__name__, call.__module__ = name, module
        return call
