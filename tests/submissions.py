"""Challenge submissions for tests: gold answers on a tiny release, to change and to damage."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from releases import tiny_release
from tasktransfer.designs.challenge.format import FILES, format_csv, to_values
from tasktransfer.designs.challenge.golds import Golds, read_golds

Files = dict[str, bytes]
"""Path in the archive → content."""

Answer = Callable[[str, str, int, tuple[str, ...]], tuple[str, ...]]
"""(task, file, instance, gold answers) → prediction."""


def write_release(folder: Path, dataset: str) -> Path:
    """Write a tiny release whose test split has duplicate instance ids, like the real one.

    One id in relation extraction and one in personality detection occur twice, with other gold
    answers the second time.
    """
    release = tiny_release(dataset)
    if dataset == "Friends":
        first, second = release.content["data"][3:5]
        for task in ("relation_extraction", "personality_detection"):
            kept, renamed = first[task][0], second[task][0]
            if task == "relation_extraction":
                kept, renamed = kept["relation_triples"][0], renamed["relation_triples"][0]
                renamed["relations"] = ["per:spouse"]
            else:
                renamed["personality_characteristics"] = dict.fromkeys(
                    renamed["personality_characteristics"], "0"
                )
            renamed["instance_id"] = kept["instance_id"]
    release.write(folder)
    return folder


def load_golds(folder: Path, dataset: str) -> Golds:
    return read_golds(folder, dataset)


def right(task: str, file: str, instance: int, gold: tuple[str, ...]) -> tuple[str, ...]:
    """Return the (first) gold answer."""
    return gold


def files_of(golds: Golds, answer: Answer = right) -> Files:
    """Return a submission's files with predictions from ``answer``, by default gold answers."""
    files: Files = {}
    for name, task in golds.tasks.items():
        ids = [
            task.row_ids[start : start + task.rows_per_instance]
            for start in range(0, len(task.row_ids), task.rows_per_instance)
        ]
        for file in FILES:
            rows = []
            for instance, gold in enumerate(task.answers):
                predicted = answer(name, file, instance, gold)
                if task.task.kind == "span":
                    predicted = predicted[:1]
                values = to_values(task.task, predicted)
                rows += list(zip(ids[instance], values, strict=True))
            files[f"{name}/{file}"] = format_csv(rows, "csv")
    return files


def packed(files: Mapping[str, bytes]) -> bytes:
    """Pack a zip in the form that most tools write."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def lines_of(files: Files, name: str) -> list[bytes]:
    return files[name].split(b"\n")[:-1]


def with_line(files: Files, name: str, number: int, line: bytes) -> Files:
    """Return the files with line ``number`` (from 1) of one file replaced."""
    lines = lines_of(files, name)
    lines[number - 1] = line
    return files | {name: b"\n".join(lines) + b"\n"}
