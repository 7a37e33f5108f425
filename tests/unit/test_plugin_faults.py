"""Faulty plugins: each error names the plugin's file and line, without a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from small_study import SMALL, refusal

from tasktransfer import designs
from tasktransfer.cli import main

HEAD = """
from tasktransfer.config import CommonConfig
from tasktransfer.designs.design import Design

class ToyConfig(CommonConfig):
    pass

def nothing(*_): ...

"""
STUDY = {"plugins": ["toy.py"], "design": "toy", **{k: SMALL[k] for k in ("study", "models")}}

FAULTS = [
    ("if True print(3)\n", "SyntaxError: invalid syntax; {file}:1)"),
    ("\n\ndef f():\nreturn 1\n", "IndentationError: expected an indented block"),
    ("import json\n\njson.loads('[')\n", "; {file}:3)"),
    ("def f():\n    raise RuntimeError('no\\n\\x1b[1m')\n\nf()\n", "no  [1m; {file}:2)"),
    (
        "class E(Exception):\n    def __str__(self):\n        raise ValueError\nraise E\n",
        "E: an error without a text; {file}:4)",
    ),
    ("class Gone(BaseException): ...\nraise Gone('now')\n", "Gone: now; {file}:2)"),
    ("raise ValueError('v' * 9999)\n", "v...; {file}:1)"),
    ("a\0b\n", "null bytes"),
    ("import absent_module\n", "No module named 'absent_module'; {file}:1)"),
    ("x = 3\n", "'odd.name.py': The plugin adds nothing. Define DATASETS, SELECTORS or DESIGN"),
    ("DATASETS = 4\n", "'odd.name.py': The value of DATASETS is 4, but it must be a list"),
    ("DATASETS = [None]\n", "DATASETS contains null, which is not a Dataset"),
    ("SELECTORS = None\n", "The value of SELECTORS is null, but it must be a list"),
    ("SELECTORS = ['length']\n", "SELECTORS contains 'length', which is not a Selector"),
    ("def __getattr__(name):\n    raise KeyError(name)\n", "(KeyError: 'DATASETS'; {file}:2)"),
]

DESIGNS = [
    ("'toy'", "missing 4 required positional arguments"),
    ("'toy', 3, ('a',), nothing, nothing", "config: 3 is not a subclass of CommonConfig"),
    ("'toy', ToyConfig, ('a',), nothing, None", "analysis: None is not a function"),
    ("'toy', ToyConfig, 'a', nothing, nothing", "kinds: 'a' is not a tuple of texts"),
    ("None, ToyConfig, ('a',), nothing, nothing", "name: None is not an identifier"),
    ("'toy', ToyConfig, ('a',), nothing, nothing, measures=[3]", "measures: [3] is not a mapping"),
    ("'toy', ToyConfig, ('a',), nothing, nothing, datasets=(3,)", "not a tuple of Dataset"),
    ("'toy', ToyConfig, ('a',), nothing, nothing, choose=3", "choose: 3 is not a function"),
]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(designs, "DESIGNS", dict(designs.DESIGNS))


@pytest.mark.parametrize(("text", "told"), FAULTS)
def test_a_fault_of_a_plugin_is_reported_with_its_line(text: str, told: str) -> None:
    file = Path("odd.name.py").resolve()
    file.write_text(text)
    said = refusal(SMALL | {"plugins": ["odd.name.py"]})
    assert "plugins[0]: " in said
    assert told.format(file=file) in said
    assert len(said) < 700 and said.isprintable()


@pytest.mark.parametrize(("arguments", "told"), DESIGNS)
def test_a_design_of_other_types_is_refused(arguments: str, told: str) -> None:
    Path("toy.py").write_text(f"{HEAD}DESIGN = Design({arguments})\n")
    said = refusal(STUDY)
    assert "plugins[0]: " in said and told in said


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        ("config.absent", "toy.py:{line}: The plugin raised AttributeError: "),
        ("5", "returned 5 instead of a plan"),
    ],
)
def test_an_error_in_a_plugins_function_is_reported_without_a_traceback(
    plan: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = f"'toy', ToyConfig, ('joint',), lambda config, revisions: {plan}, nothing"
    body = f"{HEAD}DESIGN = Design({arguments})\n"
    Path("toy.py").write_text(body)
    Path("study.yaml").write_text(yaml.safe_dump(STUDY))
    assert main(["plan", "--config", "study.yaml"]) == 2
    assert told.format(line=body.count("\n")) in capsys.readouterr().err
