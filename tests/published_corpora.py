"""Archives of EmpatheticDialogues and MultiWOZ 2.0 in the published layout."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tasktransfer.designs.empathetic.sources.cards import LABELS
from tasktransfer.designs.empathetic.sources.dialogues import SPLIT_OF, EmpatheticDialogue

HEADER = "conv_id,utterance_idx,context,prompt,speaker_idx,utterance,selfeval,tags"


def small_empathetic() -> list[EmpatheticDialogue]:
    """Three invented dialogues per emotion, one per split."""
    return [
        EmpatheticDialogue(
            name=f"hit:{10 * number + place}_conv:{20 * number + place}",
            split=split,
            emotion=emotion,
            situation=f'I was {emotion}, said "{split}" number {number}.',
            utterances=(
                f"It was my {emotion} day, in the {split}, you know, number {number} of them all.",
                f'"Oh no", what a {emotion} story about number {number}',
                *(("Yes, it was.",) if number % 2 else ()),
            ),
        )
        for number, emotion in enumerate(LABELS)
        for place, split in enumerate(SPLIT_OF)
    ]


def pack_zip(files: Mapping[str, str]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def empathetic_files(dialogues: Iterable[EmpatheticDialogue]) -> dict[str, bytes]:
    """The CSV files of the archive. The test file has candidates, as the published one."""
    lines = {split: [HEADER] for split in SPLIT_OF}
    for dialogue in dialogues:
        situation = dialogue.situation.replace(",", "_comma_")
        for number, text in enumerate(dialogue.utterances):
            cells = [dialogue.name, str(number + 1), dialogue.emotion, situation]
            cells += [str(7 + number % 2), text.replace(",", "_comma_") + " ", "5|5|5_2|2|5", ""]
            cells += ["one_comma_ two|three_pipe_ four"] * (dialogue.split == "test")
            lines[dialogue.split].append(",".join(cells))
    return {
        f"empatheticdialogues/{split}.csv": ("\n".join(rows) + "\n").encode()
        for split, rows in lines.items()
    }


def multiwoz_files(splits: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The JSON files of the archive, from split → name → dialogue with the acts in its turns."""
    data, acts = dict[str, Any](), dict[str, Any]()
    for dialogues in splits.values():
        for name, dialogue in dialogues.items():
            log = [{k: turn[k] for k in ("text", "metadata")} for turn in dialogue["log"]]
            data[f"{name}.json"] = {"goal": {"message": ["invented"]}, "log": log}
            turns = [turn.get("dialog_act") for turn in dialogue["log"][1::2]]
            acts[name] = {str(k): act or "No Annotation" for k, act in enumerate(turns, 1)}
    return {
        "MULTIWOZ2 2/data.json": json.dumps(data, indent=4),
        "MULTIWOZ2 2/dialogue_acts.json": json.dumps(acts),
        "MULTIWOZ2 2/valListFile.json": list_names(splits["dev"]),
        "MULTIWOZ2 2/testListFile.json": list_names(splits["test"]),
        "__MACOSX/MULTIWOZ2 2/._data.json": "",
    }


def list_names(names: Iterable[str]) -> str:
    return "".join(f"{name}.json\n" for name in names)


def without_user_acts(dialogues: Mapping[str, Any]) -> dict[str, Any]:
    """The dialogues with acts in system turns alone, as in the published archive."""
    return {
        name: {
            "log": [
                {
                    "text": turn["text"],
                    "metadata": turn["metadata"],
                    "dialog_act": turn["dialog_act"] if number % 2 else {},
                }
                for number, turn in enumerate(dialogue["log"])
            ]
        }
        for name, dialogue in dialogues.items()
    }


def in_thirds(names: Sequence[str]) -> dict[str, Sequence[str]]:
    return {"train": names[::3], "dev": names[1::3], "test": names[2::3]}
