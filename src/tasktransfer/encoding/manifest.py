"""Manifests of folders of token ids: their models, data, settings and counts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from tasktransfer.data.prepared import find_instances_folder, has_generated_dialogues
from tasktransfer.errors import DataError
from tasktransfer.files import json_text


class EncodedData(TypedDict):
    """Instances from which a folder of token ids was written."""

    dataset: str
    revision: str
    few_sample: bool


class EncodedIdentity(TypedDict):
    """Model, data and settings that identify a folder of token ids.

    Attributes:
        model: identity of the model (``ModelSpec``), or None if it was not given.
        fidelity: switches that differ from the defaults and change token ids.
    """

    model: dict[str, Any] | None
    data: EncodedData
    fidelity: NotRequired[Mapping[str, str]]


class EncodedManifest(EncodedIdentity):
    """Content of ``manifest.json`` in a folder of token ids.

    Attributes:
        encoding: ``ENCODING_VERSION`` of the code that wrote the folder.
        max_length: limit of a sequence, tokens.
        max_answer_tokens: by task, tokens of the longest generated answer or span; 0 if there is
            none.
        truncated: truncated sequences. This and the next attributes are counts by
            ``<task>-<split>``.
        lost_answers: gold spans lost by truncation.
        longer_answers: gold answers that are longer than a model generates.
        shortened: queries and responses that are too long by themselves and were truncated.
        examples: examples, from which training times are estimated.
        tokens: tokens in all sequences.
        beside_pad_token_ids: padding of the second encoders, if the family has one.
        sha256: checksums of the Arrow files by name.
    """

    encoding: int
    dataset: str
    synthetic: bool
    family: str
    max_length: int
    pad_token_id: int
    eos_token_id: int
    token_types: bool
    max_answer_tokens: dict[str, int]
    truncated: dict[str, int]
    lost_answers: dict[str, int]
    longer_answers: dict[str, int]
    shortened: dict[str, int]
    examples: dict[str, int]
    tokens: dict[str, int]
    beside_pad_token_ids: NotRequired[list[int]]
    sha256: dict[str, str]


def read_manifest(folder: Path) -> EncodedManifest:
    """Return the manifest of a folder of token ids.

    Raises:
        DataError: the folder is not a finished encoding.
    """
    path = folder / "manifest.json"
    try:
        manifest: EncodedManifest = json_text.read(path)
    except FileNotFoundError:
        raise DataError(
            f"{path}: The file is missing. Run `tasktransfer encode` for this folder."
        ) from None
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: The file is damaged ({error}). Remove the folder and run `tasktransfer "
            "encode` again."
        ) from None
    return manifest


def is_synthetic(folder: Path, manifest: EncodedManifest) -> bool:
    """Return whether the dialogues in a folder of token ids are synthetic.

    Manifests of older folders lack this information. It is then read from the instances.

    Raises:
        DataError: neither the manifest nor the instances have the information.
    """
    instances = find_instances_folder(folder)
    synthetic = manifest.get("synthetic", has_generated_dialogues(instances))
    if isinstance(synthetic, bool):
        return synthetic
    raise DataError(
        f"{folder / 'manifest.json'}: The value of synthetic is {synthetic!r}, but it must be "
        f"true or false. The folder {instances} does not contain the value either. Remove the "
        "folder and run `tasktransfer encode` again."
    )
