"""The commands of docs/your-own-data.md on a small file, from JSON lines to transfer trainings.

The tiny model and the tiny world replace the page's downloads.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from calls import ENVIRONMENT, ROOT, require_success

from outside_dataset.release import FRAMES, GOODS
from tasktransfer.results.records import read_record

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "your-own-data.md"


def commands() -> list[str]:
    """Return the lines of the page's shell blocks."""
    blocks = re.findall(r"^```bash\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines()]


def call(folder: Path, command: str) -> str:
    words = ["bash", "-xc", command]
    done = subprocess.run(
        words, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    require_success(done, folder)
    return done.stdout


def write_chats(file: Path) -> None:
    """Write dialogues in the first format on the page."""
    chats = {}
    for number in range(60):
        content = []
        for turn in range(3):
            shop = list(GOODS)[(number + turn) % 3]
            text = FRAMES[turn].format(thing=GOODS[shop][number % 4])
            agent = ("clerk", "customer")[turn % 2]
            content.append({"agent": agent, "message": text, "sentiment": shop})
        chats[f"chat-{number}"] = {"content": content}
    file.write_text(json.dumps(chats), encoding="utf-8")


def adapted(command: str) -> str:
    """Adapt a command to the local model and data, without downloads."""
    command = command.replace("--model ./all-MiniLM-L6-v2 --max-length 256", "--max-length 256")
    command = command.replace("./all-MiniLM-L6-v2", "tiny").replace("--release ./feta ", "")
    return command.replace("--hours 2", "--hours 2 --cores 2")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run all commands of the page before the study's run, and return their folder."""
    folder = tmp_path_factory.mktemp("own")
    write_chats(folder / "valid_freq.json")
    *before, enter, run = commands()
    assert (enter, run) == ("cd study", "tasktransfer run")
    for command in before:
        call(folder, adapted(command))
    return folder / "study"


def test_init_writes_a_study_that_fits_the_time(study: Path) -> None:
    text = (study / "config.yaml").read_text()
    assert "targets:\n- Topical/sentiment" in text and "DailyDialog/*" in text
    assert "the forecast is" in text
    assert (study / "Snakefile").is_file() and (study / "profiles/default/config.yaml").is_file()


SOURCES = ("DailyDialog/emotion_recognition", "Friends/emory_emotion_recognition")


CHANGES = (
    "check_baselines=false",
    "seeds=1",
    f"sources=[{', '.join(SOURCES)}]",
    "training={epochs: 1, limit_train: 60, limit_dev: 20, limit_test: 30, learning_rate: 0.001}",
    "datasets={DailyDialog: {tasks: [emotion_recognition]}, "
    "Friends: {tasks: [emory_emotion_recognition]}}",
)
"""Changes of the study's config: quick transfers from two sources."""


@pytest.fixture(scope="module")
def ranked(study: Path) -> Path:
    """Train transfers from two sources in that folder, and rank them by two selectors.

    Without references: selectors are not judged on a target that one epoch did not learn.
    """
    changes = (*CHANGES, "selectors=[embedding, logme]", "references=[]")
    changed = " ".join(f"'{change}'" for change in changes)
    call(
        study,
        "snakemake results/tables/regret.parquet --cores 2 --max-jobs-per-timespan 100/1s "
        f"--config {changed}",
    )
    return study


def test_selectors_rank_sources_of_other_datasets(ranked: Path) -> None:
    values = pd.read_parquet(ranked / "results/tables/selectors.parquet")
    assert set(values["source"]) == {*SOURCES}
    assert values["value"].notna().all() and values["reason"].isna().all()
    assert (values["seconds"] > 0).all()
    alike = values[values["selector"] == "embedding"]["value"]
    assert alike.max() < 0.99999 and alike.nunique() == 2  # of what the inputs say
    regret = pd.read_parquet(ranked / "results/tables/regret.parquet")
    assert {"random", "source_mean", "embedding", "logme"} == set(regret["selector"])


def test_recommend_ranks_them_by_what_is_there(ranked: Path) -> None:
    changed = " ".join(f"--set '{change}'" for change in CHANGES)
    told = call(
        ranked, f"tasktransfer recommend --target Topical/sentiment --dry-run --json {changed}"
    )
    answer = json.loads(told)
    assert answer["target"] == "Topical/sentiment"
    assert {row["source"] for row in answer["rankings"][0]["sources"]} == {*SOURCES}
    last = answer["next_steps"][-1]
    assert "sources: [" in last and "DailyDialog/emotion" in last


def test_each_stage_of_a_transfer_across_datasets_reads_its_own_data(ranked: Path) -> None:
    stages = ranked / "results/stages"
    trained = {
        (*path.relative_to(stages).parts[:2], *read_record(path)["node"]["train_tasks"])
        for path in stages.rglob("metrics.json")
    }
    assert {
        ("baseline", "DailyDialog", "emotion_recognition"),
        ("finetune", "Topical", "sentiment"),
    } <= trained
