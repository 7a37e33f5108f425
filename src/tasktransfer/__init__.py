"""Studies of dialogue models: task transfer, empathetic responses, response rating, probes.

The Python API is ``load_results``, ``load_model``, ``open_study``, ``plan`` and ``run`` (see
``tasktransfer.api``). It is imported on first use, so that the command line starts quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tasktransfer.api import (
        Results,
        StudyPlan,
        load_model,
        load_results,
        open_study,
        plan,
        run,
    )

__version__ = "0.2.0"
__all__ = [
    "Results",
    "StudyPlan",
    "__version__",
    "load_model",
    "load_results",
    "open_study",
    "plan",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'tasktransfer' has no attribute {name!r}")
    from tasktransfer import api  # noqa: PLC0415

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted(__all__)
