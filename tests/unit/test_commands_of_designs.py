"""Every command on a study of every design works, or says in a sentence why it does not apply."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from toy_study import STUDY, finish_all

from tasktransfer import cli
from tasktransfer.datasets.multiwoz.tiny_world import generate_release
from tasktransfer.designs import open_study

PRESETS = Path(__file__).resolve().parents[2] / "workflow" / "presets"
DESIGNS = ("transfer", "empathetic", "panel", "probes", "toy")

WORK = (
    "validate",
    "plan",
    "plan --json",
    "plan --on gpu --devices 3",
    "data stats --out sizes",
    "records",
    "status",
    "status --json",
    "status --summary",
    "gc",
    "gc --records --json",
)
"""What can be done with a study of any design of which nothing is made yet."""

REFUSED = {
    2: (
        "data prepare --dataset nobody --out out",
        "data prepare --dataset MultiWOZ --tiny-world --out out",
        "tiny-model --model nobody --out out",
        "encode --dataset nobody --model nobody --out out",
        "encode --node 123456789abc --model nobody --out out",
        "train --node 123456789abc",
        "train --node x",
        "derive --node 123456789abc",
        "fit --node 123456789abc",
        "evaluate --node x",
        "pilot",
        "pilot --model nobody",
        "records --model nobody",
        "records --seed 99",
        "merge nowhere",
        "merge empty --dry-run --json",
        "pack --out out.parquet --provenance nowhere",
        "choose",
        "explain 123456",
        "explain one two three four",
        "submit --dataset Friends --model nobody",
        "validate --set study=3",
        "validate --set checkpoints.keep=[nobody]",
    ),
    6: ("pack --out out.parquet", "merge file.txt", "collect", "collect --complete", "figures"),
}
"""Exit code → commands that cannot be done with such a study, whatever its design."""

OF_ONE_DESIGN = {
    "transfer": ("data reference --out out", "submit --dataset Friends --model tiny-bert"),
    "panel": ("rate empty.jsonl", "pairs --out out"),
}

WITHOUT_A_STUDY = {
    "score nowhere --data nowhere": 9,
    "leaderboard nowhere --data nowhere": 9,
    "judgements --out out": 2,
    "judgements --ratings nowhere --out out": 3,
    "gc --config nowhere.yaml": 2,
}


def study_of(design: str) -> list[str]:
    """Return the options that open a small study of a design."""
    if design == "toy":
        Path("toy.yaml").write_text(yaml.safe_dump(STUDY))
        return ["--config", "toy.yaml"]
    name = "demo" if design == "transfer" else f"{design}-demo"
    options = ["--config", str(PRESETS / f"{name}.yaml"), "--set", "results=results"]
    if design == "probes":
        generate_release(Path("world"), dialogues=24)
        options += ["--set", "data.release=world"]
    return options


@pytest.fixture(autouse=True)
def _files(here: Path) -> None:
    Path("empty").mkdir()
    Path("empty.jsonl").touch()
    Path("file.txt").write_text("no Parquet")


@pytest.fixture(params=DESIGNS)
def design(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def ends(capsys: pytest.CaptureFixture[str], words: list[str]) -> tuple[int, str, str]:
    """Return exit code and output of a command, which reports errors as messages."""
    code = cli.main(words)
    out, err = capsys.readouterr()
    assert (code == 0) == ("error: " not in err), err
    assert "Traceback" not in err
    return code, out, err


def test_what_needs_no_results_is_done(design: str, capsys: pytest.CaptureFixture[str]) -> None:
    study = study_of(design)
    for command in WORK:
        code, out, err = ends(capsys, [*command.split(), *study])
        assert code == 0, f"{command}: {err}"
        assert out, command


def test_what_cannot_be_done_is_refused(design: str, capsys: pytest.CaptureFixture[str]) -> None:
    study = study_of(design)
    for expected, commands in REFUSED.items():
        for command in commands:
            code, _, err = ends(capsys, [*command.split(), *study])
            assert code == expected, f"{command}: {err}"
    assert not Path("out").exists()


def test_a_command_of_one_design_says_so(design: str, capsys: pytest.CaptureFixture[str]) -> None:
    study = study_of(design)
    for owner, commands in OF_ONE_DESIGN.items():
        for command in commands:
            if owner != design:
                code, _, err = ends(capsys, [*command.split(), *study])
                assert code == 2, err
                assert f"the design {design}, and only " in err
                assert f"study with the design {owner}" in err


def test_only_models_that_are_made_here_are_made(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["tiny-model", "--model", "LSTM", "--out", "out", *study_of("probes")]
    code, _, err = ends(capsys, asked)
    assert code == 2
    assert (
        "LSTM uses the checkpoint 'recipe'. This command creates only the checkpoints 'tiny'" in err
    )


def test_what_a_design_does_not_make_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    study = study_of("toy")
    code, out, _ = ends(capsys, ["statistics", *study])
    assert code == 0
    assert "The design toy has no statistics" in out


def test_commands_of_a_finished_study(capsys: pytest.CaptureFixture[str]) -> None:
    study = study_of("toy")
    opened = open_study("toy.yaml")
    finish_all(opened)
    digest = opened.plan.evaluations[0].digest[:12]
    explained = (f"explain {digest}", f"explain {digest} --json")
    for command in (*WORK, "collect --complete", "figures", *explained):
        assert ends(capsys, [*command.split(), *study])[0] == 0, command


@pytest.mark.parametrize("command", WITHOUT_A_STUDY)
def test_commands_without_a_study(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, _ = ends(capsys, command.split())
    assert code == WITHOUT_A_STUDY[command]
