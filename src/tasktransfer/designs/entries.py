"""Measures, learners and recipes of designs, in addition to those of the package.

The identity of a node contains only the name and version of an entry that it uses. So names must be
unique across all designs and the package.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from tasktransfer.config import CommonConfig
from tasktransfer.core.identity import VERSIONS, Entry, Registry
from tasktransfer.datasets.dataset import Dataset
from tasktransfer.designs.design import Design
from tasktransfer.errors import ConfigError


def list_entries(design: Design) -> tuple[Entry, ...]:
    """Return the measures, learners and recipes of a design."""
    return (
        *(("measure", name) for name in design.measures),
        *(("learner", name) for name in design.learners),
        *(("recipe", name) for name in design.recipes),
    )


def add_entries(design: Design, others: Iterable[Design]) -> None:
    """Register the entries of a design in this process, with their versions.

    Raises:
        ConfigError: a name is used by the package or another design, or an entry is invalid. The
            message lists every problem.
    """
    problems = [*_find_wrong_types(design)]
    problems = problems or [*_find_used_names(design, others), *_find_invalid_entries(design)]
    if problems:
        listed = "".join(f"\n  {problem}" for problem in problems)
        raise ConfigError(
            f"The design {design.name!r} has invalid entries. Correct these entries in the "
            f"design's plugin:{listed}"
        )
    for entry in list_entries(design):
        VERSIONS[entry] = design.versions.get(entry, 1)
    if design.measures:
        from tasktransfer.metrics.measures import MEASURES  # noqa: PLC0415  # numpy, for no start

        MEASURES.update(design.measures)


_FUNCTIONS = (
    *("plan", "analysis"),
    *("facts", "substitutes", "notes", "refuse", "shortages"),
)
_MAY_BE_NONE = ("choose",)
_MAPPINGS = ("recipes", "learners", "measures", "selectors", "versions")
_TUPLES = ("kinds", "grows_with", "rules", "recipes_first")


def _find_wrong_types(design: Design) -> Iterator[str]:
    """Yield a line for each field whose type differs from the type declared in ``Design``."""
    if not isinstance(design.name, str) or not design.name.isidentifier():
        yield f"name: {design.name!r} is not an identifier. Use letters, digits and _."
    if not (isinstance(design.config, type) and issubclass(design.config, CommonConfig)):
        yield f"config: {design.config!r} is not a subclass of CommonConfig. Use a subclass."
    for name in (*_FUNCTIONS, *_MAY_BE_NONE):
        value = getattr(design, name)
        if not callable(value) and not (value is None and name in _MAY_BE_NONE):
            yield f"{name}: {value!r} is not a function. Use a function."
    for name in _MAPPINGS:
        if not isinstance(getattr(design, name), Mapping):
            yield f"{name}: {getattr(design, name)!r} is not a mapping. Write {{name: entry}}."
    for name in _TUPLES:
        values = getattr(design, name)
        if not isinstance(values, tuple) or not all(isinstance(value, str) for value in values):
            yield f"{name}: {values!r} is not a tuple of texts. Write ('name',)."
    datasets = design.datasets
    if not isinstance(datasets, tuple) or not all(isinstance(item, Dataset) for item in datasets):
        yield f"datasets: {datasets!r} is not a tuple of Dataset objects. Write (dataset,)."


def _find_used_names(design: Design, others: Iterable[Design]) -> Iterator[str]:
    """Yield a line for each entry whose name is already used by the package or another design."""
    owners = {entry: f"design {other.name!r}" for other in others for entry in list_entries(other)}
    for entry in list_entries(design):
        registry, name = entry
        owner = "the package" if name in _list_builtin_entries(registry) else owners.get(entry)
        if owner:
            yield f"{registry}s: {name!r} is the name of a {registry} of {owner}. Choose another."


def _list_builtin_entries(registry: Registry) -> Collection[str]:
    """Return the names of the package's entries.

    It is called only for designs that add entries, so that the package's designs start without
    these imports.
    """
    match registry:
        case "measure":
            from tasktransfer.metrics.measures import PACKAGE_MEASURES  # noqa: PLC0415

            return PACKAGE_MEASURES
        case "learner":
            from tasktransfer.fits import JOINT_LEARNERS, LEARNERS  # noqa: PLC0415

            return {**LEARNERS, **JOINT_LEARNERS}
        case "recipe":
            from tasktransfer.data.recipes import RECIPES  # noqa: PLC0415

            return RECIPES


def _find_invalid_entries(design: Design) -> Iterator[str]:
    """Yield a line for each incomplete measure, and for each version that belongs to no entry."""
    for name, measure in design.measures.items():
        if measure.name != name:
            yield f"measures: {name!r} has the name {measure.name!r}. Use the same name twice."
        if measure.of_rows is None:
            yield f"measures: {name!r} has no of_rows, so it cannot be computed. Define of_rows."
    entries = list_entries(design)
    for entry, version in design.versions.items():
        if entry not in entries:
            yield f"versions: {entry!r} is not an entry of the design. Its entries are {entries}."
        elif not isinstance(version, int) or version < 1:
            yield f"versions: {entry!r} has version {version!r}. Use 1, 2 and so on."
