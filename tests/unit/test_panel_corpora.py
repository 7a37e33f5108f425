"""The training corpora of a panel."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tasktransfer.designs.panel.sources.corpora import (
    DAILY_SPLIT,
    DAILY_ZIP,
    OFFICIAL,
    read_daily_dialog,
)
from tasktransfer.errors import DataError


def test_splits_that_were_drawn_again_are_refused(tmp_path: Path) -> None:
    """FETA's own splits put official test dialogues into training."""
    said = ["Where do we leave the old violin?", "We always leave it at home."]
    turns = [{"utterance": text} for text in said]
    content = {"data": [{"dialogue_id": "d-1", "dialogue": turns}]}
    files = {name: tmp_path / Path(name).name for name in (DAILY_ZIP, DAILY_SPLIT)}
    files |= {name: tmp_path / f"{split}.txt" for split, name in OFFICIAL.items()}
    with zipfile.ZipFile(files[DAILY_ZIP], "w") as archive:
        archive.writestr("TLiDB_DailyDialog/TLiDB_DailyDialog.json", json.dumps(content))
    files[OFFICIAL["dev"]].write_text("Hello . __eou__ Hi . __eou__\n")
    files[OFFICIAL["test"]].write_text(f"{said[0]} __eou__ {said[1].lower()} __eou__\n")
    files[DAILY_SPLIT].write_text("dialogue_id,split\nd-1,train\n")
    wanted = r"split\.csv and .*test\.txt:1: .*'daily-d-1' \(train\) and .* have the same text. New"
    with pytest.raises(DataError, match=wanted):
        list(read_daily_dialog(files))
    files[DAILY_SPLIT].write_text("dialogue_id,split\nd-1,test\n")
    assert [one.split for one in read_daily_dialog(files)] == ["dev"]
    files[DAILY_SPLIT].write_text("dialogue_id,split\n")
    with pytest.raises(DataError, match="the split of dialogue d-1"):
        list(read_daily_dialog(files))
