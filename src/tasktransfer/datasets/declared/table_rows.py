"""Rows of Parquet and Arrow files, of ``Dataset.save_to_disk`` folders and of hub datasets."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tasktransfer.datasets.declared.row_fields import FIX_REMEDY, SourceRow
from tasktransfer.errors import DataError, format_problem
from tasktransfer.files import json_text
from tasktransfer.files.bounded_memory import limit_memory
from tasktransfer.files.fields import Location
from tasktransfer.files.untrusted import MAX_RATIO, RATIO_FREE_BYTES, open_regular

BATCH_ROWS = 16
"""Number of rows that are unpacked together."""
MAX_BATCH_BYTES = 128 * 2**20
"""Maximum memory for unpacked rows. A row of JSON lines has at most 8 MiB."""
_TOO_MUCH_MEMORY = f"some rows take more than {MAX_BATCH_BYTES // 2**20} MiB of memory"
MAX_VALUES = 2**20
"""Maximum number of values per row, counting each item of a list."""
PAGE_BYTES = 2**16
"""Number of bytes of a column that are read together."""
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
"""Name that pandas gives to an index without a name."""
_FEATURES_KEY = b"huggingface"
"""Key of a schema's metadata for the types of ``datasets``, including names of labels."""


def read_parquet_rows(path: Path, notes: list[str]) -> Iterator[SourceRow]:
    """Yield the rows of a Parquet file. Raises DataError if it is damaged."""
    with _convert_errors(path, "write it again as Parquet"), open_regular(path) as stream:
        file = pq.ParquetFile(stream, buffer_size=PAGE_BYTES, pre_buffer=False)
        size = path.stat().st_size
        if file.metadata.num_rows > size:
            raise DataError(
                f"{path}: The file claims to contain {file.metadata.num_rows:,} rows, which are "
                "too many for the size of the file. Write the file again as Parquet."
            )
        reader = _BatchReader(str(path), file.schema_arrow, notes, size)
        yield from reader.convert_rows(file.iter_batches(BATCH_ROWS, use_threads=False))


def read_arrow_rows(path: Path, notes: list[str]) -> Iterator[SourceRow]:
    """Yield the rows of an Arrow file or stream. Raises DataError if it is damaged."""
    with _convert_errors(path, "write it again as Arrow (IPC)"):
        yield from _read_arrow(path, str(path), notes)


def read_saved_rows(path: Path, notes: list[str]) -> Iterator[SourceRow]:
    """Yield the rows of a folder written by ``Dataset.save_to_disk``.

    Raises:
        DataError: the folder is damaged.
    """
    with _convert_errors(path, "save it again with Dataset.save_to_disk"):
        number = 0
        for entry in json_text.read(path / "state.json")["_data_files"]:
            for row in _read_arrow(path / Path(entry["filename"]).name, str(path), notes):
                number += 1
                location = Location(str(path), row=f"row {number}", remedy=FIX_REMEDY)
                yield SourceRow(number, row.values, location)


def read_hub_rows(
    name: str, config: str | None, split: str, revision: str | None
) -> Iterator[SourceRow]:
    """Yield the rows of a dataset on the hub, from the local cache if possible.

    Raises:
        DataError: the dataset cannot be loaded. The message quotes the library's message.
    """
    library = _import_datasets()
    with _convert_errors(
        name, "check the name, or set HF_HUB_OFFLINE=0 if the network is available"
    ):
        try:
            table = library.load_dataset(name, config, split=split, revision=revision)
        except Exception:
            _check_cache_writable(Path(library.config.HF_DATASETS_CACHE))
            raise
        reader = _BatchReader(f"{name} ({split})", table.features.arrow_schema, [])
        yield from reader.convert_rows(table.with_format("arrow").iter(BATCH_ROWS))


def find_named_labels(path: Path, form: str) -> dict[str, Any]:
    """Return the fields of a table whose labels have names, with their types.

    Args:
        path: the file or folder.
        form: parquet, arrow or saved.

    Raises:
        DataError: the table is damaged.
    """
    with _convert_errors(path, "write it again"):
        if form == "parquet":
            with open_regular(path) as stream:
                return _select_named_labels(_read_features(pq.ParquetFile(stream).schema_arrow))
        if form == "saved":
            path = (
                path / Path(json_text.read(path / "state.json")["_data_files"][0]["filename"]).name
            )
        open_regular(path).close()
        with pa.memory_map(str(path)) as source:
            return _select_named_labels(_read_features(_open_batches(source)[0]))


def _read_arrow(path: Path, name: str, notes: list[str]) -> Iterator[SourceRow]:
    open_regular(
        path
    ).close()  # This raises an error for a pipe or a device, which cannot be mapped.
    with pa.memory_map(str(path)) as source:
        schema, batches = _open_batches(source)
        yield from _BatchReader(name, schema, notes, path.stat().st_size).convert_rows(batches)


def _open_batches(source: pa.NativeFile) -> tuple[pa.Schema, Iterable[pa.RecordBatch]]:
    """Open an Arrow stream or file, and return its schema and batches.

    One thread unpacks the batches one at a time, in memory that ``limit_memory`` counts.
    """
    options: dict[str, Any] = {
        "options": pa.ipc.IpcReadOptions(use_threads=False),
        "memory_pool": pa.system_memory_pool(),
    }
    try:
        stream = pa.ipc.open_stream(source, **options)
    except pa.ArrowInvalid:
        file = pa.ipc.open_file(source, **options)
        return file.schema, map(file.get_batch, range(file.num_record_batches))
    return stream.schema, stream


class _BatchReader:
    """Converter of batches to rows, with names of labels and without an index of pandas.

    Args:
        name: name of the file or dataset, for messages.
        schema: schema of the batches.
        notes: list to which notes about the reading of the table are added.
        size: size of the file in bytes. Unpacked rows may take ``MAX_RATIO`` times as many. None
            if the table is not a file.
    """

    def __init__(
        self, name: str, schema: pa.Schema, notes: list[str], size: int | None = None
    ) -> None:
        if repeated := [key for key, count in Counter(schema.names).items() if count > 1]:
            raise DataError(
                f"{name}: Two columns have the name {repeated[0]!r:.80}. Rename one of the two "
                "columns."
            )
        self.name = name
        self.most = None if size is None else max(RATIO_FREE_BYTES, MAX_RATIO * size)
        self.features = _select_named_labels(_read_features(schema))
        self.index = [key for key in schema.names if _PANDAS_INDEX.fullmatch(key)]
        named = ", ".join(self.features)
        new = [f"{name}: labels of {named} are read by their names (ClassLabel)"] if named else []
        new += [f"{name}: {key} is an index of pandas and is skipped" for key in self.index]
        notes += [note for note in new if note not in notes]

    def convert_rows(self, batches: Iterable[pa.RecordBatch | pa.Table]) -> Iterator[SourceRow]:
        number = 0
        for batch in self._limit_size(batches):
            batch.validate(full=True)
            for start in range(0, batch.num_rows, BATCH_ROWS):
                rows = batch.slice(start, BATCH_ROWS)
                self._check_size(rows)
                for values in rows.to_pylist():
                    number += 1
                    location = Location(self.name, row=f"row {number}", remedy=FIX_REMEDY)
                    for key, feature in self.features.items():
                        values[key] = _replace_label_numbers(values[key], feature, location)
                    for key in self.index:
                        del values[key]
                    yield SourceRow(number, values, location)

    def _limit_size(self, batches: Iterable[pa.RecordBatch | pa.Table]) -> Iterator[Any]:
        """Yield batches, and raise DataError if they are far larger than dialogues usually are."""
        waiting, taken = iter(batches), 0
        while True:
            try:
                with limit_memory(MAX_BATCH_BYTES):
                    batch = next(waiting, None)
            except MemoryError:
                raise self._build_size_error(_TOO_MUCH_MEMORY) from None
            if batch is None:
                return
            taken += batch.nbytes
            if self.most is not None and taken > self.most:
                raise self._build_size_error(
                    f"the file unpacks to more than {MAX_RATIO} times its size"
                )
            yield batch

    def _check_size(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Raise DataError if the rows would take far more memory than dialogues usually do."""
        if rows.nbytes > MAX_BATCH_BYTES:
            raise self._build_size_error(_TOO_MUCH_MEMORY)
        if any(_count_values(column) > BATCH_ROWS * MAX_VALUES for column in rows.columns):
            raise self._build_size_error(f"a row has more than {MAX_VALUES:,} values")

    def _build_size_error(self, what: str) -> DataError:
        remedy = "If the dialogues are valid, write them as JSON lines"
        return DataError(
            format_problem(self.name, f"{what}, which is too much for dialogues", remedy)
        )


def _count_values(column: pa.Array | pa.ChunkedArray) -> int:
    """Count the values in a column, including list items and struct fields."""
    if isinstance(column, pa.ChunkedArray):
        return sum(map(_count_values, column.chunks))
    if pa.types.is_struct(column.type):
        return sum(map(_count_values, column.flatten()))
    if pa.types.is_map(column.type):
        return len(column) + _count_values(column.keys) + _count_values(column.items)
    is_list = hasattr(column, "flatten") and pa.types.is_nested(column.type)
    return len(column) + (_count_values(column.flatten()) if is_list else 0)


def _read_features(schema: pa.Schema) -> Mapping[str, Any]:
    """Read the types of ``datasets`` from a schema's metadata, or return {} without any."""
    try:
        features = json_text.loads((schema.metadata or {})[_FEATURES_KEY])["info"]["features"]
    except (KeyError, TypeError, ValueError):
        return {}
    known = isinstance(features, Mapping) and features.keys() <= set(schema.names)
    return features if known else {}


def _select_named_labels(features: Mapping[str, Any]) -> dict[str, Any]:
    """Return the types that contain named labels at any level."""
    return {key: feature for key, feature in features.items() if _has_named_labels(feature)}


def _has_named_labels(feature: Any) -> bool:
    if isinstance(feature, list):
        return any(map(_has_named_labels, feature))
    if not isinstance(feature, Mapping):
        return False
    is_label = feature.get("_type") == "ClassLabel" and isinstance(feature.get("names"), list)
    return is_label or any(map(_has_named_labels, feature.values()))


def _replace_label_numbers(value: Any, feature: Any, location: Location) -> Any:
    """Replace label numbers in a value by names. The number -1 is a missing label.

    Raises:
        DataError: a number has no name.
    """
    if isinstance(feature, list) and feature:
        feature = feature[0]
    if value is None or not isinstance(feature, Mapping):
        return value
    if feature.get("_type") == "ClassLabel" and isinstance(value, int):
        names = feature.get("names") or []
        if value >= len(names) or value < -1:
            raise location.error(
                f"the label number {value} has no name, because the file defines only "
                f"{len(names)} names"
            )
        return None if value == -1 else names[value]
    inner = feature.get("feature", feature)
    if isinstance(value, list):
        return [_replace_label_numbers(item, inner, location) for item in value]
    if isinstance(value, dict) and isinstance(inner, Mapping):
        return {
            key: _replace_label_numbers(item, inner.get(key), location)
            for key, item in value.items()
        }
    return value


READERS: Mapping[str, Callable[[Path, list[str]], Iterator[SourceRow]]] = {
    "parquet": read_parquet_rows,
    "arrow": read_arrow_rows,
    "saved": read_saved_rows,
}
"""Format → reader."""


# --- the library, for the hub alone ---------------------------------------------------------------


def _import_datasets() -> Any:
    """Import ``datasets`` without progress bars and without torch.

    Its import takes a second. Importing torch for a class that is not used here would take another
    second and 200 MB.
    """
    if sys.modules.get("datasets") is not None:
        return sys.modules["datasets"]
    previous = os.environ.get("USE_TORCH")
    os.environ["USE_TORCH"] = "0"
    try:
        import datasets  # noqa: PLC0415
    except ImportError:
        raise DataError(
            "datasets: The package is not installed, but datasets on the hub can only be read "
            "with it. Install tasktransfer[train], or use files."
        ) from None
    finally:
        del os.environ["USE_TORCH"]
        os.environ.update({} if previous is None else {"USE_TORCH": previous})
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)
    return datasets


def _check_cache_writable(cache: Path) -> None:
    """Raise DataError if the library's cache is not writable.

    The library's own message would name the dataset as the cause.
    """
    try:
        cache.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=cache).close()
    except OSError as error:
        raise DataError(
            f"{cache}: The cache of the package datasets cannot be written "
            f"({error.strerror}). Set HF_HOME to a writable folder."
        ) from None


@contextmanager
def _convert_errors(path: Path | str, remedy: str) -> Iterator[None]:
    """Convert a library's exceptions to DataError."""
    try:
        yield
    except (DataError, GeneratorExit, MemoryError, KeyboardInterrupt):
        raise
    except Exception as error:  # Libraries raise various types for a damaged file.
        what = " ".join(str(error.__cause__ or error).split())
        problem = f"The data cannot be read ({what:.200})"
        raise DataError(format_problem(path, problem, remedy)) from error
