"""Import torch and transformers without what a training never uses.

Of the seconds from a training's start to its first update most go into imports, and of those half
into torch's compiler, distributed tensors and packages for object detection, which transformers
takes in whether or not they are used. A study starts thousands of processes. What is left out here
is not needed to train, and the compiler comes by itself when it is asked for after all.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

COMPILER = "torch._dynamo"
MASK_TRACING = f"{COMPILER}._trace_wrapped_higher_order_op"
UNUSED = ("accelerate", "scipy", "sklearn", "trio")
"""Packages that transformers imports if they are installed, and a training does not need."""


def import_libraries() -> None:
    """Import torch and transformers; call it before anything else imports them.

    Where the compiler is imported already nothing is put in its place.
    """
    gc_was_on = gc.isenabled()
    gc.disable()  # imports make many objects and no garbage
    try:
        import torch
        import torch.distributed

        if COMPILER not in sys.modules:
            _stand_in_for_compiler(torch)
        with _without(UNUSED), _alone(torch.distributed):
            import transformers

            with _listed_once(transformers):
                import transformers.modeling_utils
    finally:
        if gc_was_on:
            gc.enable()


class _Compiler(ModuleType):
    """In the place of ``torch._dynamo``: decorators that do nothing, and what else is asked for
    from the real one, which then takes this one's place."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        _make_way()
        return getattr(importlib.import_module(COMPILER), name)


class _Watch:
    """A finder that sees any import of the compiler's parts before it happens."""

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        if name.startswith((f"{COMPILER}.", "torch._inductor")):
            _make_way()
            if name.startswith(COMPILER):
                importlib.import_module(COMPILER)
                if name in sys.modules:
                    return ModuleSpec(name, _AsImported())  # type: ignore[arg-type]
        return None


class _AsImported:
    """A loader of a module that is there already."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return sys.modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        pass


def _make_way() -> None:
    """Take the stand-in away; whoever imports the compiler from now on gets the real one."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Watch)]
    for module in (COMPILER, MASK_TRACING):
        sys.modules.pop(module, None)
    vars(sys.modules["torch"]).pop("_dynamo", None)


def _stand_in_for_compiler(torch: ModuleType) -> None:
    compiler = _Compiler(COMPILER)
    compiler.__path__ = [str(Path(str(torch.__file__)).parent / "_dynamo")]
    vars(compiler).update(
        disable=_as_it_is,
        allow_in_graph=_as_it_is,
        assume_constant_result=_as_it_is,
        graph_break=_nothing,
        mark_static_address=_nothing,
    )
    tracing = ModuleType(MASK_TRACING)
    # Only entered while a mask with a function of the caller's own is made; no model here does.
    vars(tracing)["TransformGetItemToIndex"] = object
    sys.modules[COMPILER], sys.modules[MASK_TRACING] = compiler, tracing
    vars(torch)["_dynamo"] = compiler
    sys.meta_path.insert(0, _Watch())


def _as_it_is(function: Any = None, *_: Any, **__: Any) -> Any:
    """A decorator, with or without arguments, that changes nothing."""
    return (lambda decorated: decorated) if function is None else function


def _nothing(*_: Any, **__: Any) -> None:
    return None


@contextmanager
def _without(packages: tuple[str, ...]) -> Iterator[None]:
    """Packages that are not imported yet count as not installed in the block."""
    hidden = [name for name in packages if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            if sys.modules.get(name) is None:
                sys.modules.pop(name, None)


@contextmanager
def _alone(distributed: Any) -> Iterator[None]:
    """A training is one process: torch says in the block that it can be no more."""
    available = distributed.is_available
    distributed.is_available = lambda: False
    try:
        yield
    finally:
        distributed.is_available = available


@contextmanager
def _listed_once(transformers: ModuleType) -> Iterator[None]:
    """``transformers`` reads hundreds of files to list its models, and ``transformers.models``
    reads them again; in the block it is given the same list."""
    from transformers.utils import import_utils

    models = Path(str(transformers.__file__)).parent / "models"
    listing = import_utils.define_import_structure
    listed = listing(models, prefix="models")
    own = {
        needs: {name.removeprefix("models."): found for name, found in modules.items()}
        for needs, modules in listed.items()
    }

    def again(path: Any, prefix: str | None = None) -> Any:
        if prefix is None and Path(path).parent == models:
            return own
        return listing(path, prefix)

    import_utils.define_import_structure = again  # type: ignore[assignment]
    try:
        yield
    finally:
        import_utils.define_import_structure = listing
