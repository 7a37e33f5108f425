"""Small dialogue files in sixteen formats and structures, each with its declaration."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets as library
import pyarrow as pa
import pyarrow.parquet as pq

from tasktransfer.datasets import find_dataset_problems
from tasktransfer.datasets.dataset import Dataset
from tasktransfer.datasets.declared.reader import build_dataset
from tasktransfer.datasets.declared.section import Declaration
from tasktransfer.tasks.card import SPLITS, Instance
from tasktransfer.tasks.checks import find_instance_problem

Json = dict[str, Any]
INTENTS = ("billing", "login", "shipping")
SIZES = {"train": 9, "dev": 3, "test": 4}


def dialogue(split: str, number: int) -> Json:
    """Return texts that break formats: quotes, commas, line ends, other scripts."""
    intent = INTENTS[number % 3]
    return {
        "ticket_id": f"{split}-{number}",
        "intent": intent,
        "messages": [
            {"role": "agent", "content": 'Hello, "friend";\nwhat is it?', "urgency": "low"},
            {"role": "customer", "content": f"my {intent} | 2020-01-01 é 好", "urgency": "high"},
            {"role": "agent", "content": f"0{number}", "urgency": "low"},
        ],
    }


WORLD = {split: [dialogue(split, n) for n in range(size)] for split, size in SIZES.items()}
TURNS = {"turns": "messages", "text": "content", "speaker": "role", "id": "ticket_id"}
FLAT = {"text": "content", "speaker": "role", "id": "ticket_id"}
TASKS: Json = {
    "intent": {"kind": "dialogue_classification", "label": "intent"},
    "urgency": {"kind": "utterance_classification", "label": "messages[].urgency"},
}
FLAT_TASKS: Json = TASKS | {"urgency": {"kind": "utterance_classification", "label": "urgency"}}


def utterances(rows: list[Json]) -> list[Json]:
    """Return one row per utterance."""
    return [
        {"ticket_id": row["ticket_id"], "intent": row["intent"], **turn}
        for row in rows
        for turn in row["messages"]
    ]


def lines(rows: list[Json]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def as_jsonl(file: Path, rows: list[Json]) -> None:
    file.write_text(lines(rows), encoding="utf-8")


def as_bom_and_crlf(file: Path, rows: list[Json]) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + lines(rows).replace("\n", "\r\n").encode())


def as_gzip(file: Path, rows: list[Json]) -> None:
    file.write_bytes(gzip.compress(lines(rows).encode()))


def as_json(file: Path, rows: list[Json]) -> None:
    file.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def as_json_object(file: Path, rows: list[Json]) -> None:
    file.write_text(json.dumps({"version": 1, "data": rows}), encoding="utf-8")


def as_csv(separator: str) -> Callable[[Path, list[Json]], None]:
    def write(file: Path, rows: list[Json]) -> None:
        with file.open("w", newline="", encoding="utf-8") as stream:
            table = csv.DictWriter(stream, list(rows[0]), delimiter=separator)
            table.writeheader()
            table.writerows(rows)

    return write


def as_csv_of_dialogues(file: Path, rows: list[Json]) -> None:
    as_csv(",")(file, [row | {"messages": json.dumps(row["messages"])} for row in rows])


def as_parquet(file: Path, rows: list[Json]) -> None:
    pq.write_table(pa.Table.from_pylist(rows), file)


def as_lists(file: Path, rows: list[Json]) -> None:
    """Return one list per field, as in many published datasets."""
    keys = ("role", "content", "urgency")
    as_parquet(
        file,
        [row | {"messages": {k: [t[k] for t in row["messages"]] for k in keys}} for row in rows],
    )


def as_arrow(file: Path, rows: list[Json]) -> None:
    table = pa.Table.from_pylist(rows)
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def as_saved(file: Path, rows: list[Json]) -> None:
    library.Dataset.from_list(rows).save_to_disk(str(file))


def same(rows: list[Json]) -> list[Json]:
    return rows


Shape = tuple[str, Callable[[Path, list[Json]], None], Callable[[list[Json]], list[Json]]]
SHAPES: dict[str, Shape] = {
    "json lines": ("{}.jsonl", as_jsonl, same),
    "byte order mark and CRLF": ("{}.jsonl", as_bom_and_crlf, same),
    "compressed": ("{}.jsonl.gz", as_gzip, same),
    "json": ("{}.json", as_json, same),
    "json under a key": ("{}.json", as_json_object, same),
    "json lines called json": ("{}.json", as_jsonl, same),
    "json lines of utterances": ("{}.jsonl", as_jsonl, utterances),
    "csv of utterances": ("{}.csv", as_csv(","), utterances),
    "csv with semicolons": ("{}.csv", as_csv(";"), utterances),
    "tsv": ("{}.tsv", as_csv("\t"), utterances),
    "csv of dialogues": ("{}.csv", as_csv_of_dialogues, same),
    "parquet": ("{}.parquet", as_parquet, same),
    "parquet of utterances": ("{}.parquet", as_parquet, utterances),
    "parquet of lists": ("{}.parquet", as_lists, same),
    "arrow": ("{}.arrow", as_arrow, same),
    "saved": ("{}", as_saved, same),
}


def written(folder: Path, shape: str, world: dict[str, list[Json]] = WORLD) -> Json:
    """Write a world in some structure, and return its declaration."""
    name, write, rows = SHAPES[shape]
    files = {}
    for split, of_split in world.items():
        file = folder / name.format(split)
        write(file, rows(of_split))
        files[split] = str(file)
    flat = rows is utterances
    return {
        "files": files,
        "dialogue": FLAT if flat else TURNS,
        "tasks": FLAT_TASKS if flat else TASKS,
    }


def made(declaration: Json, memory: Path | None = None) -> Dataset:
    dataset = build_dataset("Tickets", Declaration.model_validate(declaration), memory)
    assert list(find_dataset_problems(dataset)) == []
    return dataset


def instances(dataset: Dataset, *, few_sample: bool = False) -> dict[str, list[Instance]]:
    release = dataset.reader.open(Path(), few_sample)
    found = {}
    for task in release.tasks:
        for split in SPLITS:
            found[f"{task}-{split}"] = rows = list(release.instances(task, split))
            assert [find_instance_problem(dataset.tasks[task], row) for row in rows] == [
                None
            ] * len(rows)
    return found


def plain(found: dict[str, list[Instance]]) -> Any:
    """Return instances without their names, which contain file and row."""
    keys = ("dialogue_id", "context", "focus", "query", "options", "target", "starts", "turns")
    return {
        key: [[getattr(row, name) for name in keys] for row in rows] for key, rows in found.items()
    }
