"""YAML that reads back unchanged, whatever texts it contains.

Names of fields, files and labels come from a user's data and become keys and values of a config.
PyYAML quotes texts that need quotes. This module escapes characters that a terminal or an editor
does not show, and keeps comments on one line.
"""

from __future__ import annotations

from typing import Any

import yaml

from tasktransfer.config import yaml_file
from tasktransfer.errors import ConfigError, escape_line, escape_text

WIDTH = 100


class _Dumper(yaml.SafeDumper):
    """A dumper without anchors and aliases, whose texts are read as texts by every parser."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _quote_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Quote a text that YAML 1.2 would read as a number (``1e3``) or that needs escapes."""
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


_Dumper.add_representer(str, _quote_text)


def format_yaml(value: Any) -> str:
    """Format plain data as YAML in block style.

    Raises:
        ConfigError: the text is not read back as the same value.
    """
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH)
    # Such characters occur only in double quotes, in which YAML has Python's escapes.
    text = escape_text(text)
    if yaml_file.parse_value(text, "generated YAML") != value:
        raise ConfigError("The generated YAML cannot be read back. Report this bug.")
    return text


def format_comment(text: str) -> str:
    """Format a text as a one-line comment."""
    return f"# {escape_line(text)}".rstrip()
