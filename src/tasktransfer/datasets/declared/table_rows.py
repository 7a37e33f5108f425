"""The rows of Parquet and Arrow files, of folders that ``Dataset.save_to_disk`` wrote, and of
datasets on the hub."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tasktransfer.datasets.declared.source_row import MEND, SourceRow
from tasktransfer.errors import DataError
from tasktransfer.files import json_text
from tasktransfer.files.fields import Location
from tasktransfer.files.regular import open_regular

BATCH = 256
MAX_ROWS_PER_BYTE = 10
"""Of a Parquet file: equal rows are packed well, but dialogues are not equal."""
_INDEX = re.compile(r"__index_level_\d+__")
"""What pandas calls an index without a name."""
_FEATURES = b"huggingface"
"""Under this key a schema has the types of ``datasets``, the names of labels among them."""


def read_parquet_rows(path: Path, notes: list[str]) -> Iterator[SourceRow]:
    """Yield the rows of a Parquet file. Raises DataError if it is damaged."""
    with _reporting(path, "write it again as Parquet"), open_regular(path) as stream:
        file = pq.ParquetFile(stream)
        if file.metadata.num_rows > MAX_ROWS_PER_BYTE * path.stat().st_size:
            raise DataError(
                f"{path}: has {file.metadata.num_rows:,} rows, more than dialogues in a file of "
                "its size; write it again as Parquet"
            )
        reader = _Reader(str(path), file.schema_arrow, notes)
        yield from reader.rows(file.iter_batches(BATCH))


def read_arrow_rows(path: Path, notes: list[str]) -> Iterator[SourceRow]:
    """Yield the rows of an Arrow file or stream. Raises DataError if it is damaged."""
    with _reporting(path, "write it again as Arrow (IPC)"):
        yield from _read_arrow(path, str(path), notes)


def read_saved_rows(path: Path, notes: list[str]) -> Iterator[SourceRow]:
    """Yield the rows of a folder that ``Dataset.save_to_disk`` wrote. Raises DataError if it is
    damaged."""
    with _reporting(path, "save it again with Dataset.save_to_disk"):
        number = 0
        for entry in json_text.read(path / "state.json")["_data_files"]:
            for row in _read_arrow(path / Path(entry["filename"]).name, str(path), notes):
                number += 1
                location = Location(str(path), row=f"row {number}", remedy=MEND)
                yield SourceRow(number, row.values, location)


def read_hub_rows(
    name: str, config: str | None, split: str, revision: str | None
) -> Iterator[SourceRow]:
    """Yield the rows of a split of a dataset on the hub, from the library's cache if it is there.

    Raises:
        DataError: the dataset cannot be loaded; says what the library says.
    """
    library = _import_datasets()
    with _reporting(name, "look at the name, or set HF_HUB_OFFLINE=0 where there is a network"):
        try:
            table = library.load_dataset(name, config, split=split, revision=revision)
        except Exception:
            _refuse_unwritable(Path(library.config.HF_DATASETS_CACHE))
            raise
        reader = _Reader(f"{name} ({split})", table.features.arrow_schema, [])
        yield from reader.rows(table.with_format("arrow").iter(BATCH))


def find_named_labels(path: Path, form: str) -> dict[str, Any]:
    """Return the fields of a table whose labels are read by their names, with their types.

    Args:
        form: parquet, arrow or saved.

    Raises:
        DataError: the table is damaged.
    """
    with _reporting(path, "write it again"):
        if form == "parquet":
            with open_regular(path) as stream:
                return _named_labels(_read_features(pq.ParquetFile(stream).schema_arrow))
        if form == "saved":
            path = (
                path / Path(json_text.read(path / "state.json")["_data_files"][0]["filename"]).name
            )
        open_regular(path).close()
        with pa.memory_map(str(path)) as source:
            return _named_labels(_read_features(_open_batches(source)[0]))


def _read_arrow(path: Path, name: str, notes: list[str]) -> Iterator[SourceRow]:
    open_regular(path).close()  # refuses a pipe or a device, which memory cannot map
    with pa.memory_map(str(path)) as source:
        schema, batches = _open_batches(source)
        yield from _Reader(name, schema, notes).rows(batches)


def _open_batches(source: pa.NativeFile) -> tuple[pa.Schema, Iterable[pa.RecordBatch]]:
    try:
        stream = pa.ipc.open_stream(source)
    except pa.ArrowInvalid:
        file = pa.ipc.open_file(source)
        return file.schema, map(file.get_batch, range(file.num_record_batches))
    return stream.schema, stream


class _Reader:
    """Makes rows of batches: labels by their names, and without an index of pandas."""

    def __init__(self, name: str, schema: pa.Schema, notes: list[str]) -> None:
        self.name = name
        self.features = _named_labels(_read_features(schema))
        self.index = [key for key in schema.names if _INDEX.fullmatch(key)]
        named = ", ".join(self.features)
        new = [f"{name}: labels of {named} are read by their names (ClassLabel)"] if named else []
        new += [f"{name}: {key} is an index of pandas; passed over" for key in self.index]
        notes += [note for note in new if note not in notes]

    def rows(self, batches: Iterable[pa.RecordBatch | pa.Table]) -> Iterator[SourceRow]:
        number = 0
        for batch in batches:
            batch.validate(full=True)
            for start in range(0, batch.num_rows, BATCH):
                for values in batch.slice(start, BATCH).to_pylist():
                    number += 1
                    for key, feature in self.features.items():
                        values[key] = _by_names(values[key], feature)
                    for key in self.index:
                        del values[key]
                    location = Location(self.name, row=f"row {number}", remedy=MEND)
                    yield SourceRow(number, values, location)


def _read_features(schema: pa.Schema) -> Mapping[str, Any]:
    """The types of ``datasets`` that a schema has beside its own; none if it has none."""
    try:
        features = json_text.loads((schema.metadata or {})[_FEATURES])["info"]["features"]
    except (KeyError, TypeError, ValueError):
        return {}
    known = isinstance(features, Mapping) and features.keys() <= set(schema.names)
    return features if known else {}


def _named_labels(features: Mapping[str, Any]) -> dict[str, Any]:
    """Those of some types that have labels by name, at any depth."""
    return {key: feature for key, feature in features.items() if _has_labels(feature)}


def _has_labels(feature: Any) -> bool:
    if isinstance(feature, list):
        return any(map(_has_labels, feature))
    if not isinstance(feature, Mapping):
        return False
    is_label = feature.get("_type") == "ClassLabel" and isinstance(feature.get("names"), list)
    return is_label or any(map(_has_labels, feature.values()))


def _by_names(value: Any, feature: Any) -> Any:
    """A value with the names of its labels in place of their numbers; -1 is a label that is
    missing."""
    if isinstance(feature, list) and feature:
        feature = feature[0]
    if value is None or not isinstance(feature, Mapping):
        return value
    if feature.get("_type") == "ClassLabel" and isinstance(value, int):
        names = feature.get("names") or []
        return names[value] if 0 <= value < len(names) else None if value == -1 else value
    inner = feature.get("feature", feature)
    if isinstance(value, list):
        return [_by_names(item, inner) for item in value]
    if isinstance(value, dict) and isinstance(inner, Mapping):
        return {key: _by_names(item, inner.get(key)) for key, item in value.items()}
    return value


READERS: Mapping[str, Callable[[Path, list[str]], Iterator[SourceRow]]] = {
    "parquet": read_parquet_rows,
    "arrow": read_arrow_rows,
    "saved": read_saved_rows,
}
"""Format → reader."""


# --- the library, for the hub alone ---------------------------------------------------------------


def _import_datasets() -> Any:
    """``datasets``, which takes a second to import; without the bars that no log wants, and without
    torch, which it would import for a class that nobody needs here: 200 MB and as long again."""
    if sys.modules.get("datasets") is not None:
        return sys.modules["datasets"]
    asked = os.environ.get("USE_TORCH")
    os.environ["USE_TORCH"] = "0"
    try:
        import datasets  # noqa: PLC0415
    except ImportError:
        raise DataError(
            "datasets: is not installed, and names on the hub need it; install "
            "tasktransfer[train], or give files"
        ) from None
    finally:
        del os.environ["USE_TORCH"]
        os.environ.update({} if asked is None else {"USE_TORCH": asked})
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)
    return datasets


def _refuse_unwritable(cache: Path) -> None:
    """Name the cache if nothing can be written in it: the library blames the dataset then."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=cache).close()
    except OSError as error:
        raise DataError(
            f"{cache}: the cache of datasets cannot be written ({error.strerror}); set HF_HOME to "
            "a folder that you may write"
        ) from None


@contextmanager
def _reporting(path: Path | str, remedy: str) -> Iterator[None]:
    """Report what a library raises as a DataError."""
    try:
        yield
    except (DataError, GeneratorExit, MemoryError, KeyboardInterrupt):
        raise
    except Exception as error:  # whatever a library raises for a damaged file
        what = " ".join(str(error.__cause__ or error).split())
        raise DataError(f"{path}: cannot be read ({what:.200}); {remedy}") from error
