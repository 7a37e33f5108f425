"""List a config's keys by their full path, such as ``models[].adapter.rank``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]


ALTERNATIVES = {
    "DatasetSection": "a dataset of the package",
    "DeclaredSection": "your own files",
}
"""Section → its difference from the other sections that may have the same place."""


def keys(schema: Schema) -> Iterator[str]:
    """Yield a table of the top-level keys, then one table for each key that has keys of its own."""
    definitions = schema.get("$defs", {})
    yield f"{_join(schema.get('description', ''))} `NAME` in a path is a name of your choice.\n"
    yield "## Top-level keys\n"
    yield from _table(list_keys(schema, definitions, depth=0), definitions)
    for name, key in schema["properties"].items():
        for number, (place, part) in enumerate(list_sections(name, key, definitions)):
            difference = ALTERNATIVES.get(part.get("title", ""))
            title = f"{place}: {difference}" if difference else place
            yield f"## {title} {{#{name}{f'-{number}' if number else ''}}}\n"
            yield f"{_join(part.get('description', ''))}\n"
            yield from _table(list_keys(part, definitions, f"{place}."))


def list_keys(
    part: Schema, definitions: dict[str, Schema], before: str = "", depth: int = 9
) -> list[tuple[str, Schema]]:
    """Return path → schema of each key, each followed by the keys inside it.

    Args:
        part: schema of a section of the config.
        definitions: the schema's named sections.
        before: path of the section, with a dot at its end.
        depth: number of levels below the section's own keys.
    """
    found = []
    for name, key in part["properties"].items():
        found.append((f"{before}{name}", key))
        for place, inner in list_sections(f"{before}{name}", key, definitions) if depth else []:
            found += list_keys(inner, definitions, f"{place}.", depth - 1)
    return found


def list_sections(
    path: str, key: Schema, definitions: dict[str, Schema]
) -> list[tuple[str, Schema]]:
    """Return (path, section) pairs for the sections that a key's value can be or contain."""
    if "$ref" in key:
        return [(path, definitions[key["$ref"].rpartition("/")[2]])]
    found = []
    for each in (*key.get("anyOf", ()), *key.get("oneOf", ())):
        found += list_sections(path, each, definitions)
    if isinstance(items := key.get("items"), dict):
        found += list_sections(f"{path}[]", items, definitions)
    for values in (key.get("additionalProperties"), *key.get("patternProperties", {}).values()):
        if isinstance(values, dict):
            found += list_sections(f"{path}.NAME", values, definitions)
    return found


def _table(
    rows: list[tuple[str, Schema]], linked: dict[str, Schema] | None = None
) -> Iterator[str]:
    """Yield the lines of a table. With ``linked``, keys with sections lead to their tables."""
    yield "| key | type | default | meaning |"
    yield "|---|---|---|---|"
    for path, key in rows:
        has_table = linked is not None and list_sections(path, key, linked)
        name = f"[`{path}`](#{path})" if has_table else f"`{path}`"
        cells = (name, type_of(key), _default(key), _join(key.get("description", "")))
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""


def _join(text: str) -> str:
    return re.sub(r"\s+", " ", str(text)).strip()


def _default(key: Schema) -> str:
    """Return a key's default as text. The keys of a section have their own defaults."""
    if "default" not in key:
        return "required"
    if "$ref" in key and isinstance(key["default"], dict):
        return "its keys' own"
    return f"`{json.dumps(key['default'], ensure_ascii=False)}`"


def type_of(key: Schema) -> str:
    """Return a key's type as text."""
    if "$ref" in key:
        return "mapping"
    if "const" in key:
        return f"`{json.dumps(key['const'])}`"
    if "enum" in key:
        return ", ".join(f"`{json.dumps(value)}`" for value in key["enum"])
    several = key.get("anyOf") or key.get("oneOf")
    if several:
        return " or ".join(dict.fromkeys(type_of(each) for each in several))
    if key.get("type") == "array":
        return f"list of {type_of(key['items'])}" if key.get("items") else "list"
    if key.get("type") == "object":
        values = [key.get("additionalProperties"), *key.get("patternProperties", {}).values()]
        types = [type_of(each) for each in values if isinstance(each, dict)]
        return f"names to {types[0]}" if types else "mapping"
    kinds = key.get("type", "any value")
    return kinds if isinstance(kinds, str) else " or ".join(kinds)
