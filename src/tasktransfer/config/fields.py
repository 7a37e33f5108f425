"""Types of config values, for the sections of every design."""

from __future__ import annotations

import re
import urllib.parse
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Strict,
)
from pydantic_core import CoreSchema, core_schema

from tasktransfer.config.places import check_home_expansion, check_path_length
from tasktransfer.core.validation import STRICT, Schema, raise_problems
from tasktransfer.errors import describe_wrong_value, format_value

MAX_SEED = 2**32 - 1
MAX_SEEDS = 1000
MAX_COUNT = 10**9
"""Maximum of any count."""

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
"""Control characters and halves of surrogate pairs, which no path, title or record can contain."""

_FLOAT_TEXT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
"""A number that YAML 1.1 reads as text because it has an exponent but no dot: ``3e-5``."""


class Section(BaseModel):
    """A mapping with fixed keys. Defaults are checked like values of the file."""

    model_config = STRICT | ConfigDict(validate_default=True)


@dataclass(frozen=True, slots=True)
class Text:
    """A marker for strings that must match a pattern as a whole.

    Attributes:
        remedy: imperative sentence about a valid string for the error message, without full stop.
    """

    pattern: str
    remedy: str

    def check(self, value: str) -> str:
        if _UNPRINTABLE.search(value):
            raise ValueError(
                f"The text {format_value(value)} contains an unprintable character. Remove the "
                "character."
            )
        if not re.fullmatch(self.pattern, value):
            raise ValueError(f"The value {format_value(value)} is not valid. {self.remedy}.")
        return value

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> Schema:
        printable = {"not": {"pattern": _UNPRINTABLE.pattern}}
        return handler(schema) | {"pattern": f"^(?:{self.pattern})$"} | printable


@dataclass(frozen=True, slots=True)
class _Number:
    """A marker for floats, which YAML 1.1 may have read as text."""

    def convert_text(self, value: Any) -> Any:
        return float(value) if isinstance(value, str) and _FLOAT_TEXT.fullmatch(value) else value

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.convert_text, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> Schema:
        number = handler(schema) | {"type": ["number", "string"]}
        return number | {"pattern": f"^(?:{_FLOAT_TEXT.pattern})$"}


def _check_duplicates(values: tuple[Any, ...]) -> tuple[Any, ...]:
    first: dict[str, int] = {}
    repeated = []
    for index, value in enumerate(values):
        earlier = first.setdefault(repr(value), index)
        if earlier != index:
            plain = value.model_dump() if isinstance(value, BaseModel) else value
            message = (
                f"{format_value(plain)} duplicates {{path}}[{earlier}]. Remove one of the two."
            )
            repeated.append((f"[{index}]", message))
    raise_problems(repeated)
    return values


def _expand_seed_count(value: Any) -> Any:
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    if not 1 <= value <= MAX_SEEDS:
        expected = f"a number of seeds from 1 to {MAX_SEEDS}, or a list of seeds"
        raise ValueError(describe_wrong_value(value, expected))
    return list(range(value))


def _check_host(url: str) -> str:
    """Return a URL, or raise ValueError if its host is missing or its port is invalid."""
    try:
        parts = urllib.parse.urlsplit(url)
        if parts.hostname and parts.port != 0:
            return url
    except ValueError:  # from the port, or from an address in brackets
        pass
    raise ValueError(
        f"The address {format_value(url)} contains no host, or its port is not valid. Correct the "
        "address."
    )


LIST = Strict(False)
"""Marker for a tuple that a YAML list is converted to."""

DISTINCT = AfterValidator(_check_duplicates)
"""Marker for a tuple without duplicates."""

NOT_EMPTY = Field(min_length=1)
"""Marker for a tuple of one item or more."""

FEW = Field(min_length=1, max_length=20)
"""Marker for a tuple of 1 to 20 items, which are combined with those of other keys."""

NUMBER = _Number()

Title = Annotated[str, Text(r"\S(.*\S)?", "Write some text")]
Folder = Annotated[
    str,
    Text(r"[^{}*?\"'$`\\\n]*[^{}*?\"'$`\\\s]", "Write a folder without quotes, * ? $ \\ { }"),
    AfterValidator(check_path_length),
]
UserPath = Annotated[Folder, AfterValidator(check_home_expansion)]
Checkpoint = Annotated[
    str,
    Text(r"\S(.*\S)?", "Write 'tiny', a folder or a hub name"),
    AfterValidator(check_path_length),
    AfterValidator(check_home_expansion),
]
Url = Annotated[
    str,
    Text(r"https?://[!$->A-\[\]-~]+", "Write an address such as http://localhost:8000/v1"),
    AfterValidator(_check_host),
]
KeyVariable = Annotated[
    str,
    Text(
        r"[A-Za-z_][A-Za-z0-9_]*_API_KEY",
        "Write the name of an environment variable that ends in _API_KEY, not its value",
    ),
]
Revision = Annotated[str, Text(r"[\w./-]+", "Write a branch, tag or commit")]
ModelName = Annotated[
    str,
    Text(
        r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}",
        "Write at most 100 letters, digits, '.', '_' and '-', of which the first is a letter or "
        "digit, because the name is part of paths",
    ),
]
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
Epochs = Annotated[int, Field(ge=1, le=10_000)]
BatchSize = Annotated[int, Field(ge=1, le=100_000)]
Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]
_SeedList = Annotated[list[Seed], Field(min_length=1, max_length=MAX_SEEDS)]
Seeds = Annotated[
    tuple[Seed, ...],
    LIST,
    Field(min_length=1, max_length=MAX_SEEDS),
    DISTINCT,
    BeforeValidator(
        _expand_seed_count,
        json_schema_input_type=Annotated[int, Field(ge=1, le=MAX_SEEDS)] | _SeedList,
    ),
]
