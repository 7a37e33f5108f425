"""The JSON schema of a declaration: what ``declare.check`` accepts, said to other tools."""

from __future__ import annotations

from typing import Any

from tasktransfer.config.declare import (
    ABSENT,
    FLOAT_TEXT,
    REQUIRED,
    UNPRINTABLE,
    Choice,
    Declaration,
    Either,
    Flag,
    ListOf,
    Nothing,
    Real,
    Section,
    Text,
    Whole,
)


def json_schema(declaration: Declaration) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of what ``check`` accepts."""
    match declaration:
        case Text():
            printable = {"not": {"pattern": UNPRINTABLE.pattern}}
            return {"type": "string", "pattern": f"^(?:{declaration.pattern})$", **printable}
        case Flag():
            return {"type": "boolean"}
        case Whole(low, high):
            return {"type": "integer", "minimum": low, "maximum": high}
        case Real(above, high, inclusive):
            limit = {} if high is None else {"maximum": high}
            number = {
                "type": "number",
                "minimum" if inclusive else "exclusiveMinimum": above,
                **limit,
            }
            return {"anyOf": [number, {"type": "string", "pattern": f"^(?:{FLOAT_TEXT.pattern})$"}]}
        case Choice(names):
            return {"enum": [*names, *([False] if declaration.false_as else [])]}
        case Nothing():
            return {"type": "null"}
        case ListOf(item, low, high):
            items = json_schema(item)
            bounds = {"minItems": low} | ({"maxItems": high} if high else {})
            return {"type": "array", "items": items, **bounds, "uniqueItems": True}
        case Section():
            return _section_schema(declaration)
        case Either(options):
            return {"anyOf": [json_schema(option) for option in options]}


def _section_schema(section: Section) -> dict[str, Any]:
    properties = {}
    for key in section.keys:
        properties[key.name] = json_schema(key.value) | {"description": key.help}
        if key.default is not REQUIRED and key.default is not ABSENT:
            properties[key.name]["default"] = key.default
    return {
        "type": "object",
        "properties": properties,
        "required": [key.name for key in section.keys if key.default is REQUIRED],
        "additionalProperties": False,
        **({"minProperties": section.minimum} if section.minimum else {}),
    }
