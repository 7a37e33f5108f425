"""Splits of a release: its id files, and checks against leaks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tasktransfer.datasets.feta.archive import (
    FEW_SAMPLE_ID_FILES,
    ID_FILES,
    Source,
    get_json_file_name,
)
from tasktransfer.errors import DataError, format_location
from tasktransfer.tasks.card import SPLITS


@dataclass(frozen=True, slots=True)
class SplitIds:
    """Dialogue ids per split, in the order of the id files.

    Args:
        full: ids of train, dev and test.
        few_sample: ids of train and dev, since the few-sample setting uses the whole test split.
    """

    full: dict[str, tuple[str, ...]]
    few_sample: dict[str, tuple[str, ...]]

    def get_ids(self, split: str, few_sample: bool) -> tuple[str, ...]:
        """Return the dialogue IDs of ``split`` in the few-sample or the full-data setting."""
        return self.few_sample.get(split, self.full[split]) if few_sample else self.full[split]


def get_id_file_name(split: str, few_sample: bool) -> str:
    """Return the official name of the file with the dialogue IDs of ``split``."""
    return FEW_SAMPLE_ID_FILES.get(split, ID_FILES[split]) if few_sample else ID_FILES[split]


def parse_split_ids(source: Source, files: Mapping[str, bytes]) -> SplitIds:
    """Parse the splits of a release from the bytes of its ID files.

    Raises:
        DataError: a file is empty, an id is repeated, a dialogue is in two splits, or a few-sample
            id is not in its full split.
    """
    full = {split: _parse_ids(source, name, files[name]) for split, name in ID_FILES.items()}
    few = {
        split: _parse_ids(source, name, files[name]) for split, name in FEW_SAMPLE_ID_FILES.items()
    }
    _check_disjoint(source, {ID_FILES[split]: ids for split, ids in full.items()})
    _check_disjoint(source, {FEW_SAMPLE_ID_FILES[split]: ids for split, ids in few.items()})
    for split, ids in few.items():
        outsiders = sorted(set(ids) - set(full[split]))
        if outsiders:
            raise DataError(
                f"{source.get_location(FEW_SAMPLE_ID_FILES[split])}: The few-sample {split} split "
                f"must be a subset of the full split, but its dialogue {outsiders[0]!r} "
                f"({len(outsiders)} in all) is not in {ID_FILES[split]}. Use the official files."
            )
    return SplitIds(full=full, few_sample=few)


def check_dialogues_present(
    source: Source, ids: SplitIds, split: str, few_sample: bool, known: Collection[str]
) -> None:
    """Raise DataError if dialogues of ``split`` are not among the release's IDs (``known``)."""
    wanted = ids.get_ids(split, few_sample)
    absent = [dialogue for dialogue in wanted if dialogue not in known]
    if not absent:
        return
    where, data = (
        source.get_location(get_id_file_name(split, few_sample)),
        get_json_file_name(source.dataset),
    )
    if few_sample or split == "test":
        raise DataError(
            f"{where}: The file {data} lacks {len(absent)} of the {len(wanted)} listed dialogues, "
            f"for example {absent[0]!r}, so the two files are from different releases. Copy the "
            "release again."
        )
    raise DataError(
        f"{where}: {len(absent):,} of the {len(wanted):,} dialogues of the {split} split, such as "
        f"{absent[0]!r}, are not in the file {data}, so the release does not contain the full "
        "data. Use the full release, or set data.few_sample: true."
    )


def map_dialogues_to_splits(ids: SplitIds) -> dict[str, str]:
    """Map each dialogue ID to its split in the full-data setting."""
    return {dialogue: split for split in SPLITS for dialogue in ids.full[split]}


def _parse_ids(source: Source, name: str, content: bytes) -> tuple[str, ...]:
    where = source.get_location(name)
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where}: The text is not valid UTF-8 ({error}). Copy the release again."
        ) from error
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        dialogue = line.strip()
        if not dialogue:
            continue
        if dialogue in seen:
            raise DataError(
                f"{format_location(where, number)}: Dialogue {dialogue!r} is already on line "
                f"{seen[dialogue]}. Remove one of the two lines."
            )
        seen[dialogue] = number
    if not seen:
        raise DataError(f"{where}: The file lists no dialogues. Write one dialogue ID per line.")
    return tuple(seen)


def _check_disjoint(source: Source, lists: Mapping[str, tuple[str, ...]]) -> None:
    where: dict[str, str] = {}
    for name, ids in lists.items():
        for dialogue in ids:
            if dialogue in where:
                raise DataError(
                    f"{source.path}: Dialogue {dialogue!r} is in both files {where[dialogue]} and "
                    f"{name}. Keep the dialogue in one split."
                )
            where[dialogue] = name
