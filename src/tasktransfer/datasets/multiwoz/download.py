"""MultiWOZ 2.0 as its authors publish it, and its conversion to one file per split.

The address and the checksum are ParlAI's (``parlai/tasks/multiwoz_v20/build.py``). The archive has
all dialogues in ``data.json``, the acts of system turns in ``dialogue_acts.json``, and lists of the
validation and test dialogues. It has no acts of user turns.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tasktransfer.datasets.download import Archive, Conversion
from tasktransfer.datasets.multiwoz.dialogues import FILES, FOLDER, parse_dialogue
from tasktransfer.errors import DataError, format_quantity
from tasktransfer.files.data_files import decode_utf8, parse_json
from tasktransfer.files.json_stream import open_json
from tasktransfer.files.safe_zip import Limits, SafeZip, UnsafeZipError, check_zip, describe_flaw

ARCHIVE = Archive(
    "MULTIWOZ2.zip",
    "https://www.repository.cam.ac.uk/bitstream/handle/1810/280608/MULTIWOZ2.zip"
    "?sequence=3&isAllowed=y",
    (
        "dialogues and annotations (MultiWOZ 2.0): CC BY 4.0, see "
        "www.repository.cam.ac.uk/handle/1810/280608",
        "the authors' code at github.com/budzianowski/multiwoz: MIT",
    ),
    sha256="6b7c01952f8d0dfa4ac7109c1370e9c6e013ab704bc2f1d63c60bdab070c8506",
)
DIALOGUES, ACTS = "data.json", "dialogue_acts.json"
SPLIT_LISTS = {"dev": "valListFile.json", "test": "testListFile.json"}
"""Official split → list with the names of its dialogues, one per line."""
MAX_UNREADABLE_FRACTION = 0.01
"""Maximum fraction of a split's dialogues that are left out because they cannot be read."""
_NO_SLOTS = [["none", "none"]]
_LIMITS = Limits(total=2**30, members=10_000, ratio=100)


def write_splits(archive: Path, folder: Path) -> tuple[str, ...]:
    """Write the dialogues of each split, with acts in the turns and without goals.

    Names lose the ending ``.json``. A dialogue that cannot be read is left out, with a note.

    Raises:
        DataError: the archive is damaged or unsafe, or has other contents.
    """
    packed = _open_archive(archive)
    splits = _read_splits(archive, packed)
    acts = parse_json(_read_member(archive, packed, ACTS), f"{archive} ({ACTS})")
    if not isinstance(acts, dict):
        raise DataError(
            f"{archive} ({ACTS}): The file does not contain a JSON object. Fetch the archive again."
        )
    sizes, refused = Counter[str](), dict[str, list[str]]()
    with ExitStack() as stack:
        outs = {
            split: stack.enter_context((folder / file).open("w", encoding="utf-8", newline="\n"))
            for split, file in FILES.items()
        }
        for name, dialogue in _read_dialogues(archive, packed, folder):
            split = splits.pop(name, "train")
            converted = _convert_dialogue(dialogue, acts.get(name, acts.get(f"{name}.json")))
            try:
                parse_dialogue(folder / FILES[split], name, converted)
            except DataError as error:
                problem = str(error).removeprefix(f"{folder / FILES[split]}, ")
                refused.setdefault(split, []).append(problem)
                continue
            line = f"{json.dumps(name)}: {json.dumps(converted, ensure_ascii=False)}"
            outs[split].write(f"{',' if sizes[split] else '{'}\n{line}")
            sizes[split] += 1
        for split, out in outs.items():
            if not sizes[split]:
                raise DataError(
                    f"{archive}: The archive contains no dialogues for the split {split}. Fetch "
                    "the archive again."
                )
            out.write("\n}\n")
    return (*_list_unreadable_notes(archive, refused, sizes), *_list_missing_notes(splits))


def _open_archive(archive: Path) -> SafeZip:
    try:
        packed = check_zip(archive, _LIMITS)
    except OSError as error:
        raise DataError(
            f"{archive}: The archive cannot be read ({error}). Fetch the archive again."
        ) from None
    if packed.flaws:
        raise DataError(describe_flaw(archive, packed.flaws[0]))
    return packed


def _iterate_chunks(archive: Path, packed: SafeZip, name: str) -> Iterator[bytes]:
    """Yield the content of a named file, from any folder of the archive, in chunks."""
    members = [member for member in packed.members if Path(member).name == name]
    if len(members) != 1:
        raise DataError(
            f"{archive}: The archive contains {len(members)} files with the name {name}, but it "
            "must contain one. Fetch the archive again."
        )
    try:
        yield from packed.read_chunks(members[0])
    except UnsafeZipError as error:
        raise DataError(describe_flaw(archive, error.flaw)) from None


def _read_member(archive: Path, packed: SafeZip, name: str) -> bytes:
    return b"".join(_iterate_chunks(archive, packed, name))


def _read_splits(archive: Path, packed: SafeZip) -> dict[str, str]:
    """Map the validation and test dialogues to their splits."""
    splits: dict[str, str] = {}
    for split, file in SPLIT_LISTS.items():
        text = decode_utf8(_read_member(archive, packed, file), f"{archive} ({file})")
        for line in text.split("\n"):
            name = line.strip().removesuffix(".json")
            if name and splits.setdefault(name, split) != split:
                raise DataError(
                    f"{archive}: Dialogue {name} is in both the dev list and the test list. "
                    "Fetch the archive again."
                )
    return splits


def _read_dialogues(archive: Path, packed: SafeZip, folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield (name, dialogue) for all dialogues of an unpacked file."""
    unpacked = folder / DIALOGUES
    with unpacked.open("wb") as out:
        out.writelines(_iterate_chunks(archive, packed, DIALOGUES))
    names = set[str]()
    try:
        with open_json(unpacked) as cursor:
            for key in cursor.iterate_members():
                name = key.removesuffix(".json")
                if name in names:
                    raise DataError(
                        f"{unpacked}: Dialogue {name} is repeated. Fetch the archive again."
                    )
                names.add(name)
                yield name, cursor.read_value()
    except DataError as error:
        raise DataError(str(error).replace(str(unpacked), f"{archive} ({DIALOGUES})")) from None
    unpacked.unlink()


def _convert_dialogue(dialogue: Any, acts: Any) -> Any:
    """Return a dialogue's turns, with acts in system turns and invalid values unchanged."""
    log = dialogue.get("log") if isinstance(dialogue, dict) else None
    if not isinstance(log, list) or not all(isinstance(turn, dict) for turn in log):
        return dialogue
    turns = []
    for number, turn in enumerate(log):
        kept = {key: turn[key] for key in ("text", "metadata") if key in turn}
        kept["dialog_act"] = _find_acts(acts, number // 2 + 1) if number % 2 else {}
        turns.append(kept)
    return {"log": turns}


def _find_acts(acts: Any, exchange: int) -> Mapping[str, Any]:
    """Return the acts of an exchange (counted from 1), or {} if a text replaces them."""
    turn_acts = acts.get(str(exchange)) if isinstance(acts, dict) else None
    if not isinstance(turn_acts, dict):
        return {}
    return {act: slots or _NO_SLOTS for act, slots in turn_acts.items()}


def _list_unreadable_notes(
    archive: Path, refused: Mapping[str, list[str]], sizes: Mapping[str, int]
) -> Iterator[str]:
    """Yield one note per split with unreadable dialogues. Raises DataError if there are many."""
    for split, problems in refused.items():
        total = sizes[split] + len(problems)
        note = f"{len(problems):,} of {total:,} dialogues of {split} cannot be read ({problems[0]})"
        if len(problems) > MAX_UNREADABLE_FRACTION * total:
            raise DataError(f"{archive}: {note}. Fetch the archive again.")
        yield f"{note} and are left out."


def _list_missing_notes(splits: Mapping[str, str]) -> Iterator[str]:
    """Yield a note if the lists of splits name dialogues that do not exist."""
    if splits:
        name = min(splits)
        count = format_quantity(len(splits), "name")
        verb = "has" if len(splits) == 1 else "have"
        yield f"{count} in the lists, such as {name}, {verb} no dialogue."


CONVERSION = Conversion(ARCHIVE, FOLDER, 1, write_splits)
