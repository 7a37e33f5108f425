"""Numbers of dialogues that published releases have in two splits, as in decision 25."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasktransfer.datasets.dailydialog import DAILYDIALOG
from tasktransfer.datasets.dataset import Dataset
from tasktransfer.datasets.friends import FRIENDS
from tasktransfer.datasets.multiwoz import MULTIWOZ
from tasktransfer.designs.panel.sources.dataset import PANEL_DIALOGUES

SHARED = Path(__file__).resolve().parents[3] / "shared"
real = pytest.mark.skipif(not (SHARED / "dialogue").is_dir(), reason=f"no data in {SHARED}")


@real
@pytest.mark.parametrize(
    ("dataset", "folder", "task", "counts"),
    [
        (MULTIWOZ, "dialogue", "", {"2 dialogues are in dev and in test": (999, 1000)}),
        (
            DAILYDIALOG,
            "feta/full",
            "",
            {
                "187 dialogues are in train and in dev": (9583, 1616),
                "220 dialogues are in train and in test": (9583, 1919),
                "36 dialogues are in dev and in test": (1616, 1919),
            },
        ),
        (
            FRIENDS,
            "feta/full",
            "",
            {
                "1 dialogue is in train and in dev": (2175, 466),
                "1 dialogue is in train and in test": (2175, 466),
            },
        ),
        (
            PANEL_DIALOGUES,
            ".",
            "labeller",
            {
                "1 dialogue is in train and in dev": (7641, 1028),
                "1 dialogue is in train and in test": (7641, 1142),
            },
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Dataset) else "",
)
def test_dialogues_in_two_splits(
    dataset: Dataset, folder: str, task: str, counts: dict[str, tuple[int, int]]
) -> None:
    release = dataset.reader.open(SHARED / folder, True)
    if task:
        assert list(release.instances(task, "test"))
    told = {
        f"{what} with the same text (of {one:,} and {other:,}), as in the published release"
        for what, (one, other) in counts.items()
    }
    assert {*release.notes} == told
