"""Paths of prepared data in a results folder, and whether its dialogues are generated.

A release's metadata says whether its dialogues are generated. The prepared data repeats this for
each dataset, and all later steps read it there. This module uses the standard library only, because
every start of the program needs these paths.
"""

from __future__ import annotations

from pathlib import Path

from tasktransfer.core.identity import compute_digest
from tasktransfer.errors import DataError
from tasktransfer.files import json_text


def get_instances_folder_name(
    results: str | Path, dataset: str, revision: str, *, few_sample: bool
) -> str:
    """Return the folder name of a dataset's cached instances.

    Its name has 12 hex digits of the revision's digest.
    """
    sample = "few" if few_sample else "full"
    return f"{results}/data/instances/{dataset}-{compute_digest(revision)[:12]}-{sample}"


def require_prepared_instances(instances: Path, config_file: str) -> Path:
    """Return the folder of a dataset's cached instances, or raise an error if it is incomplete.

    Raises:
        DataError: the dataset is not prepared yet. The message has the command that prepares it.
    """
    manifest = instances / "manifest.json"
    if not manifest.exists():
        raise DataError(
            f"{instances}: The dialogues are not prepared yet. Prepare the dialogues with "
            f"`snakemake {manifest} --cores 1 --configfile {config_file}`."
        )
    return instances


def find_instances_folder(encoded: Path) -> Path:
    """Find the folder of instances from which the token IDs in ``encoded`` were computed."""
    dataset_folder = encoded.absolute().parent
    return dataset_folder.parent.parent / "instances" / dataset_folder.name


def has_generated_dialogues(instances: Path) -> bool | None:
    """Return whether the dialogues in prepared data are generated.

    None if there is no prepared data or it cannot be read.
    """
    try:
        synthetic = json_text.loads((instances / "manifest.json").read_bytes())["synthetic"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return synthetic if isinstance(synthetic, bool) else None
