"""Write YAML that reads back as what was written, whatever texts are in it.

Names of fields, files and labels come from a user's data and become keys and values of a config.
PyYAML quotes what needs quotes; characters that a terminal or an editor does not show are escaped
here, and comments stay on their line.
"""

from __future__ import annotations

from typing import Any

import yaml

from tasktransfer.config import yaml_file
from tasktransfer.errors import ConfigError, escape_line, escape_text

WIDTH = 100


class _Dumper(yaml.SafeDumper):
    """A dumper without anchors and aliases, whose texts are texts to every reader."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Quote what YAML 1.2 reads as a number (``1e3``) and what has characters to escape."""
    style = "'" if _is_number(text) else None
    if text != escape_line(text):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


_Dumper.add_representer(str, _represent_text)


def write_yaml(value: Any) -> str:
    """Return plain data as YAML in block style.

    Raises:
        ConfigError: a reader would take the text for something else; names the key.
    """
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH)
    # Within double quotes, where alone such characters are: Python's escapes are YAML's.
    text = escape_text(text)
    if yaml_file.value_of(text, "generated YAML") != value:
        raise ConfigError("generated YAML: does not read back as it was written. Report this bug")
    return text


def comment(text: str) -> str:
    """Return a text as a comment, on one line."""
    return f"# {escape_line(text)}".rstrip()
