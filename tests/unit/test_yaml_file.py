"""YAML with misleading meanings, or larger than memory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from small_study import SMALL

from tasktransfer.config import from_options, yaml_file
from tasktransfer.designs import load_config
from tasktransfer.errors import ConfigError

ALIAS_BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGE_BOMB = "a: &a {x: 1, y: 2, z: 3}\n" + "".join(
    f"{name}: &{name} {{<<: [{', '.join([f'*{before}'] * 9)}]}}\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
LADDER = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 200))


def refused(tmp_path: Path, text: str) -> str:
    path = tmp_path / "study.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (ALIAS_BOMB, ":5: The file contains more than 50,000 values"),
        (MERGE_BOMB, "contains more than 50,000 values"),
        (LADDER, "more than 50 nested levels"),
        ("a: " + "[" * 9000, ":1: The file has more than 50 nested levels"),
        ("- " * 9000, "more than 50 nested levels"),
        ("a: &a {<<: *a}\n", ":1: The alias *a contains itself"),
        ("study: !!python/object:os.system x\n", ":1: The YAML tag"),
        ("study: !!binary aGVsbG8=\n", "is not allowed. Write the value without a tag"),
        ("study: !!bool x\n", "The YAML tag"),
        ("training: !wide {epochs: 1}\n", "'!wide'"),
        (f"{'k' * 201}: 1\n", "longer than any key"),
        (f"study: {'x' * 2**20}\n", "larger than 1,048,576 bytes"),
        ("study: a\n---\nstudy: b\n", "not valid YAML"),
        ("\x00", "not valid YAML"),
    ],
)
def test_beyond_the_limits(tmp_path: Path, text: str, part: str) -> None:
    assert part in refused(tmp_path, text)


def test_a_file_of_another_kind_is_not_reported_line_by_line(tmp_path: Path) -> None:
    told = refused(tmp_path, "".join(f"key{i}: 1\n" for i in range(5000)))
    assert re.match(r".* has 10\d or more problems", told)
    assert told.count("\n") < 110


@pytest.mark.parametrize("number", ["010", "0o10", "0x10", "0b1", "1_000", "1:30", "-07", "09"])
def test_a_number_with_two_readings_is_refused_with_its_text(tmp_path: Path, number: str) -> None:
    text = yaml.safe_dump({key: value for key, value in SMALL.items() if key != "seeds"})
    told = refused(tmp_path, f"{text}seeds: [{number}]\n")
    assert re.search(rf":\d+: seeds\[0\]: The value is '?{number}", told)
    assert "\n" not in told
    with pytest.raises(ConfigError, match=r"seeds.*The value is"):
        load_config(tmp_path / "study.yaml", from_options([f"seeds={number}"]))


def test_eight_is_not_what_010_says(tmp_path: Path) -> None:
    told = refused(tmp_path, "seeds: [010]\n")
    assert "The value is 010, which YAML reads as 8. Write a number in decimal digits" in told


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ("yes", "The value is true, but it must be text. Put the value in quotes"),
        ("2024-01-01", "The value is 2024-01-01, but it must be text. Put the value in quotes"),
        ("010", "which YAML reads as 8"),
        ('"a\\0b"', "unprintable character"),
        ('"\\ud800"', "c"),  # PyYAML's parser in C refuses it as no character
        ("9" * 5000, "a number of 5,000 digits"),
    ],
)
def test_what_is_no_name_of_a_study(tmp_path: Path, value: str, part: str) -> None:
    text = yaml.safe_dump({key: value for key, value in SMALL.items() if key != "study"})
    told = refused(tmp_path, f"{text}study: {value}\n")
    assert part in told
    assert "\n" not in told


@pytest.mark.parametrize("number", ["9" * 400, "1.0e+400", ".inf", ".nan"])
def test_a_number_beyond_all_bounds(tmp_path: Path, number: str) -> None:
    for key in ("max_grad_norm", "learning_rate", "epochs"):
        assert f"training.{key}" in refused(tmp_path, f"training: {{{key}: {number}}}\n")


def test_what_is_allowed_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + yaml.safe_dump(SMALL).encode() + b"seeds: &s [0, 7, 10]\n")
    assert load_config(path).seeds == (0, 7, 10)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (
            ["training=3", "training.epochs=2"],
            "--set training.epochs=2: Another option --set also sets",
        ),
        (["training.epochs=2", "training=3"], "--set training=3: Another option --set also sets"),
        (["seeds=1", "seeds=2"], "--set seeds=2: Another option --set also sets"),
        ([".seeds=1"], "not have the form key=value"),
        (["training..epochs=1"], "not have the form key=value"),
        ([f"{'a.' * 5000}b=1"], "not have the form key=value"),
        ([f"seeds={'[' * 5000}"], "more than 50 nested levels"),
        (["seeds={a: 1, a: 2}"], "The key is on the lines"),
        ([f"seeds={'9' * 5000}"], "a number of 5,000 digits"),
        (["study=!!python/name:os.system"], "The YAML tag"),
        (["study=\udcff"], "--set study="),
    ],
)
def test_overrides_that_cannot_be(options: list[str], part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_options(options)
    assert part in str(caught.value)
    assert len(str(caught.value)) < 400


def test_an_override_of_a_list_replaces_it_whole(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(SMALL))
    with pytest.raises(ConfigError, match=r"models: The value is a list, which has no key '0'"):
        load_config(path, from_options(["models.0.name=x"]))


def test_a_text_of_an_override_stays_the_text_that_it_is(tmp_path: Path) -> None:
    """It is parsed as YAML once: quoted text is not parsed again."""
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(SMALL))
    assert load_config(path, from_options(['study="010"'])).study == "010"


def test_without_the_parser_in_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_file, "Loader", yaml.SafeLoader)
    found: dict[str, Any] = {}
    for name, text in {"bomb": ALIAS_BOMB, "deep": "[" * 9000, "octal": "seeds: [010]"}.items():
        found[name] = refused(tmp_path, text)
    assert "50,000" in found["bomb"]
    assert "50 nested levels" in found["deep"]
    assert "reads as 8" in found["octal"]
