"""Prepared data in a results folder: where it lies, and whether its dialogues are generated.

That is for the release's metadata to say, wherever the release was read from: the prepared data
repeats it, dataset by dataset, and everything made later asks the prepared data. Standard library
only, since every start asks for these places.
"""

from __future__ import annotations

from pathlib import Path

from tasktransfer.core.digests import digest_of
from tasktransfer.files import json_text


def instances_folder(results: str | Path, dataset: str, revision: str, *, few_sample: bool) -> str:
    """Folder of a dataset's cached instances. A revision, whatever it looks like, is 12 hex digits
    of it."""
    sample = "few" if few_sample else "full"
    return f"{results}/data/instances/{dataset}-{digest_of(revision)[:12]}-{sample}"


def instances_of_encoded(encoded: Path) -> Path:
    """Folder of the instances that a study's token ids were made of."""
    of_instances = encoded.absolute().parent
    return of_instances.parent.parent / "instances" / of_instances.name


def says_synthetic(instances: Path) -> bool | None:
    """Whether the dialogues of prepared data are generated; None where no prepared data is there,
    or what is there cannot be read."""
    try:
        synthetic = json_text.loads((instances / "manifest.json").read_bytes())["synthetic"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return synthetic if isinstance(synthetic, bool) else None
