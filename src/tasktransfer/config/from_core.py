"""Config sections whose keys have the types and defaults of a core type's fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

from pydantic import Field, create_model

from tasktransfer.config.fields import Section
from tasktransfer.config.renamed_keys import get_new_name


class CoreKey(NamedTuple):
    """A key for a field of a core type.

    Attributes:
        description: text for the schema.
        markers: constraints on values other than None.
        kind: type of the key; None for the type of the field.
        default: default of the key; ``MISSING`` for the default of the field.
    """

    description: str
    markers: tuple[Any, ...] = ()
    kind: Any = None
    default: Any = MISSING


def define_section(
    name: str, path: str, base: type[Section], core: type, keys: Mapping[str, CoreKey]
) -> Any:
    """Create a section with the keys of a base section and keys for fields of a core type.

    Args:
        name: name of the section in the schema.
        path: path of the section in config files, where ``renamed_keys`` may rename fields.
        base: section with the other keys, which come first, and with the docstring.
        core: dataclass with the fields.
        keys: name of the field → its key, in the order of the schema.
    """
    types = list_types(core)
    defaults = {each.name: each.default for each in fields(core)}
    definitions: dict[str, Any] = {
        get_new_name(field, path): (
            _add_markers(types[field] if key.kind is None else key.kind, key.markers),
            Field(
                default=defaults[field] if key.default is MISSING else key.default,
                description=key.description,
            ),
        )
        for field, key in keys.items()
    }
    return create_model(name, __base__=base, __doc__=base.__doc__, **definitions)


def list_types(core: type) -> dict[str, Any]:
    """Return the fields of a dataclass with their types."""
    types = get_type_hints(core)
    return {each.name: types[each.name] for each in fields(core)}


def _add_markers(kind: Any, markers: tuple[Any, ...]) -> Any:
    """Return a type with constraints on its values; an optional type still allows None."""
    if not markers:
        return kind
    if type(None) in get_args(kind):
        (kind,) = (each for each in get_args(kind) if each is not type(None))
        return Annotated[kind, *markers] | None
    return Annotated[kind, *markers]
