"""Old config keys are refused with their new names, and digests keep the old names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tasktransfer.config import build_config, read
from tasktransfer.config.renamed_keys import RENAMED, get_new_path, restore_old_names
from tasktransfer.designs import DESIGNS
from tasktransfer.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = {name: f"{'config' if name == 'transfer' else name}.schema.json" for name in DESIGNS}
VALUE = "a value"


def list_keys(node: Any, root: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of all keys of a schema."""
    if "$ref" in node:
        node = root["$defs"][node["$ref"].rpartition("/")[2]] | node
    for option in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        yield from list_keys(option, root, path)
    for key, value in node.get("properties", {}).items():
        below = f"{path}.{key}".lstrip(".")
        yield below
        yield from list_keys(value, root, below)
    if isinstance(node.get("items"), dict):
        yield from list_keys(node["items"], root, f"{path}[]")


@pytest.fixture(scope="module")
def keys() -> dict[str, set[str]]:
    """Design → paths of its keys."""
    schemas = {
        design: json.loads((ROOT / "workflow/schemas" / file).read_text())
        for design, file in SCHEMAS.items()
    }
    return {design: set(list_keys(schema, schema)) for design, schema in schemas.items()}


def nest(path: str) -> Any:
    """Return a config with a value at a path."""
    value: Any = VALUE
    for part in reversed(path.split(".")):
        key, brackets, _ = part.partition("[]")
        value = {key: [value] if brackets else value}
    return value


@pytest.mark.parametrize("old", RENAMED)
def test_an_old_key_is_refused_with_its_new_name(
    old: str, keys: dict[str, set[str]], tmp_path: Path
) -> None:
    designs = [design for design, known in keys.items() if get_new_path(old) in known]
    assert designs
    for design in designs:
        assert old not in keys[design]
        file = tmp_path / f"{design}.yaml"
        file.write_text(yaml.safe_dump({"design": design, **nest(old)}, sort_keys=False))
        line = next(n for n, text in enumerate(file.read_text().splitlines(), 1) if VALUE in text)
        with pytest.raises(ConfigError) as refused:
            build_config(read(file), DESIGNS[design].config)
        place, new = old.replace("[]", "[0]"), RENAMED[old]
        message = f"{file}:{line}: {place}: The key was renamed to {new}. Write {new}: '{VALUE}'"
        assert message in str(refused.value)


def test_digests_have_the_old_names() -> None:
    for old in RENAMED:
        assert restore_old_names(nest(get_new_path(old))) == nest(old)
    section = {"max_words": 40, "groups": 3}
    restored = {"longest": 40, "groups": 3}
    assert restore_old_names(section, "evaluation.decoding") == restored
