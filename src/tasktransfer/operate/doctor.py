"""Checks of this machine and installation (fine, slow, lacking or wrong), with remedies.

Nothing is changed or repaired. Only light packages are needed; torch is checked if installed.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Literal

from tasktransfer.config import yaml_file
from tasktransfer.errors import ConfigError, ModelError, StorageError, TaskTransferError
from tasktransfer.files import locks
from tasktransfer.files.terminal import Colour, apply_colour
from tasktransfer.operate.forecast.disk import format_bytes
from tasktransfer.results.provenance import read_cpu_name
from tasktransfer.training.device import get_batch_job, get_lock_folder, list_devices

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from tasktransfer.results.study import Study

State = Literal["fine", "slow", "lacking", "wrong"]
COLOURS: dict[State, Colour] = {"fine": "green", "slow": "yellow", "lacking": "dim", "wrong": "red"}

LEAST_FREE = 1 << 30
"""Free disk space in bytes below which even the first training fails."""
LEAST_MEMORY = 4 << 30
"""Free memory in bytes below which a real-size model would swap to disk."""
NETWORK = ("nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "ceph", "9p", "fuse.sshfs", "afs")
"""Prefixes of the names of network file systems."""
DEPENDENCIES = ("", "train")
"""Extras whose packages are checked: none (the base installation) and ``train``."""


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one check.

    ``state``: ``slow`` if it works but could be faster; ``lacking`` if something optional is
    missing; ``wrong`` if a study would fail. ``exit_code``: exit code if wrong, else 0. ``remedy``:
    a sentence; empty if all is fine.
    """

    name: str
    state: State
    text: str
    remedy: str = ""
    exit_code: int = 0


def run_checks(study: Study | None, folder: Path) -> Iterator[Check]:
    """Run all checks in order.

    Args:
        study: study to be run here; None to check only the machine.
        folder: working directory of Snakemake.
    """
    yield check_python()
    yield check_packages()
    yield check_command()
    yield from check_torch_and_devices(study)
    yield check_processor()
    yield from check_memory()
    results = Path(study.config.results) if study else folder
    yield check_disk(results)
    yield check_file_system(results)
    yield check_kernel_locks(results)
    yield check_snakemake_lock(folder)
    yield check_profile(folder)
    if study is not None:
        yield from check_inputs(study)


def check_python() -> Check:
    """Check the Python version against the minimum version of the package."""
    from packaging.specifiers import SpecifierSet  # noqa: PLC0415  # few commands need it

    wanted = metadata.metadata("tasktransfer")["Requires-Python"]
    text = f"{platform.python_version()}, {sys.executable}"
    if SpecifierSet(wanted).contains(platform.python_version(), prereleases=True):
        return Check("Python", "fine", text)
    remedy = f"install Python {wanted}, and install tasktransfer in an environment with it"
    return Check("Python", "wrong", text, remedy, ConfigError.exit_code)


def check_packages() -> Check:
    """Check the versions of installed packages against the requirements.

    Packages of an extra are checked only if they are installed.
    """
    from packaging.requirements import Requirement  # noqa: PLC0415

    unfit: list[str] = []
    for text in metadata.requires("tasktransfer") or ():
        needed = Requirement(text)
        extras = [name for name in DEPENDENCIES if _belongs_to_extra(needed, name)]
        found = _read_version(needed.name)
        if not extras or (found is None and "" not in extras):
            continue
        if found is None or not needed.specifier.contains(found, prereleases=True):
            unfit.append(f"{needed.name} {found or 'absent'}, required {needed.specifier}")
    ours, snakemake = _read_version("tasktransfer"), _read_version("snakemake")
    text = f"tasktransfer {ours}, Snakemake {snakemake or 'absent'}"
    if not unfit:
        return Check("packages", "fine", text)
    remedy = "pip install --upgrade tasktransfer, in this environment"
    return Check("packages", "wrong", f"{text}; {'; '.join(unfit)}", remedy, ConfigError.exit_code)


def _belongs_to_extra(needed: Requirement, extra: str) -> bool:
    return needed.marker is None or needed.marker.evaluate({"extra": extra})


def _read_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def check_command() -> Check:
    """Check that ``tasktransfer`` is on the PATH, because the workflow's jobs call it by name."""
    found = shutil.which("tasktransfer")
    if found is not None and Path(found).parent == Path(sys.executable).parent:
        return Check("command", "fine", found)
    where = f"{found} is from another environment" if found else "`tasktransfer` is not on the PATH"
    remedy = f"activate the environment: export PATH={Path(sys.executable).parent}:$PATH"
    return Check("command", "wrong", where, remedy, ConfigError.exit_code)


def check_torch_and_devices(study: Study | None) -> Iterator[Check]:
    """Check that torch is installed and finds the GPUs, and that the device supports bfloat16."""
    if find_spec("torch") is None:
        yield _report_missing_torch(study)
        return
    from tasktransfer.training.torch_facts import collect_torch_facts  # noqa: PLC0415  # imports torch

    facts = collect_torch_facts()
    built = f"for CUDA {facts.cuda}" if facts.cuda else "for CPUs"
    yield Check("torch", "fine", f"{facts.version}, {built}")
    pool = list_devices()
    if facts.gpus:
        named = ", ".join(f"{one.name} ({format_bytes(one.memory)})" for one in facts.gpus)
        yield Check("GPU", "fine", f"{len(facts.gpus)}: {named}")
    elif pool:
        text = f"{len(pool)} in this machine, but torch finds none"
        remedy = "install a build of torch for this driver's CUDA (https://pytorch.org/get-started)"
        yield Check("GPU", "slow", text, remedy)
    elif get_batch_job() is not None:
        remedy = "request one from the batch system, for example --gres=gpu:1"
        yield Check("GPU", "slow", "none was allocated to this batch job", remedy)
    else:
        remedy = "use one for models above 30M parameters; `tasktransfer plan` estimates the time"
        yield Check("GPU", "slow", "none: trainings run on the CPU, one thread each", remedy)
    yield _check_bfloat16(facts)


def _report_missing_torch(study: Study | None) -> Check:
    text = "not installed: tables, figures and reports work, trainings do not"
    remedy = "pip install 'tasktransfer[train]'"
    if study is None or not _has_unfinished_trainings(study):
        return Check("torch", "lacking", text, remedy)
    return Check(
        "torch",
        "wrong",
        f"{text}, and this study has unfinished trainings",
        remedy,
        ModelError.exit_code,
    )


def _has_unfinished_trainings(study: Study) -> bool:
    from tasktransfer.results.node_folders import has_valid_record  # noqa: PLC0415  # reads records: pyarrow

    return study.has_unknown_inputs or not all(
        has_valid_record(study, stage) for stage in study.plan.stages
    )


def _check_bfloat16(facts: Any) -> Check:
    if any(one.bfloat16 for one in facts.gpus):
        return Check("bfloat16", "fine", "supported by the GPU")
    if facts.gpus:
        return Check(
            "bfloat16",
            "slow",
            "not supported by this GPU; float32 is used",
            "use an Ampere GPU or later",
        )
    if facts.cpu_units:
        text = f"supported by the CPU ({', '.join(facts.cpu_units)}); used if a model gains by it"
        return Check("bfloat16", "fine", text)
    remedy = "trainings use float32; a CPU with AMX or avx512_bf16 is up to three times as fast"
    text = f"not supported by this CPU (torch uses {facts.capability})"
    return Check("bfloat16", "slow", text, remedy)


def check_processor() -> Check:
    """Check that this process may use several cores."""
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    text = f"{read_cpu_name()}, {mine} of {os.cpu_count()} cores"
    if mine > 1:
        return Check("CPU", "fine", text)
    return Check("CPU", "slow", text, "one training at a time: use a machine with more cores")


def check_memory() -> Iterator[Check]:
    """Check that enough memory is free. Nothing is yielded if psutil is not installed."""
    if find_spec("psutil") is None:
        return
    import psutil  # noqa: PLC0415  # Snakemake's

    seen = psutil.virtual_memory()
    text = f"{format_bytes(seen.available)} free of {format_bytes(seen.total)}"
    if seen.available >= LEAST_MEMORY:
        yield Check("memory", "fine", text)
    else:
        remedy = "end other programs, or start Snakemake with fewer --cores"
        yield Check("memory", "slow", text, remedy)


# --- disk ---------------------------------------------------------------------------------------


def check_disk(results: Path) -> Check:
    """Check that enough disk space is free for the first training."""
    folder = _locate_existing_folder(results)
    free = shutil.disk_usage(folder).free
    text = f"{format_bytes(free)} free at {folder}"
    if free >= LEAST_FREE:
        return Check("disk", "fine", f"{text} (`tasktransfer plan` estimates a study's needs)")
    remedy = "free some space, or put `results` of the config elsewhere"
    return Check("disk", "wrong", text, remedy, StorageError.exit_code)


def _locate_existing_folder(path: Path) -> Path:
    """Return the folder, or its nearest parent that exists."""
    return next(place for place in (path.absolute(), *path.absolute().parents) if place.is_dir())


def check_file_system(results: Path, mounts: Path = Path("/proc/mounts")) -> Check:
    """Check for a network file system, on which thousands of small files are slow."""
    folder = _locate_existing_folder(results).resolve()
    try:
        lines = [line.split() for line in mounts.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return Check("file system", "fine", "unknown on this system")
    fitting = [words for words in lines if folder.is_relative_to(words[1].replace("\\040", " "))]
    kind = max(fitting, key=lambda words: len(words[1]))[2] if fitting else "unknown"
    if not kind.startswith(NETWORK):
        return Check("file system", "fine", kind)
    remedy = "put `results` of the config on a disk of this machine, and `tasktransfer merge` later"
    return Check("file system", "slow", f"{kind}: results are on another machine", remedy)


def check_kernel_locks(results: Path) -> Check:
    """Check that file locks work in the results folder and in the folder for GPU leases."""
    for folder in (_locate_existing_folder(results), get_lock_folder()):
        try:
            with TemporaryFile(dir=folder) as file:
                if not locks.try_lock(file.fileno()):
                    raise OSError("the file system reports a lock on a new file")
        except OSError as error:
            remedy = (
                "make it writable, or put `results` (and TASKTRANSFER_LOCKS) on a file system with "
                "flock"
            )
            text = f"{folder}: {error.strerror or error}"
            return Check("locks", "wrong", text, remedy, StorageError.exit_code)
    return Check(
        "locks", "fine", f"work in {_locate_existing_folder(results)} and {get_lock_folder()}"
    )


# --- Snakemake ----------------------------------------------------------------------------------


def check_snakemake_lock(folder: Path) -> Check:
    """Check for a stale Snakemake lock, which remains if Snakemake is killed."""
    held = sorted((folder / ".snakemake" / "locks").glob("*.lock"))
    if not held:
        return Check("Snakemake's lock", "fine", "free")
    if running := _list_snakemake_processes(folder):
        text = f"held by running process {running[0]}"
        return Check("Snakemake's lock", "fine", text)
    remedy = "`snakemake --unlock` here, if no Snakemake runs on another machine"
    text = "held, but no Snakemake runs here: one was killed"
    return Check("Snakemake's lock", "wrong", text, remedy, TaskTransferError.exit_code)


def _list_snakemake_processes(folder: Path) -> list[int]:
    """Return the IDs of Snakemake processes that run in a folder."""
    if find_spec("psutil") is None:
        return []
    import psutil  # noqa: PLC0415

    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline()[:4])
            if "snakemake" in words and Path(process.cwd()) == folder.resolve():
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


def check_profile(folder: Path) -> Check:
    """Check the profile that Snakemake uses by default (docs/running.md)."""
    chosen = os.environ.get("SNAKEMAKE_PROFILE")
    beside = [folder / "profiles/default", folder / "workflow/profiles/default"]
    found = next((path for path in beside if (path / "config.yaml").is_file()), None)
    if found is None and chosen is None:
        packaged = Path(__file__).parents[1] / "workflow/profiles/default"
        remedy = f"snakemake --workflow-profile {packaged}: its scheduler does not run a solver"
        return Check("profile", "slow", "none is active", remedy)
    parts = [f"SNAKEMAKE_PROFILE={chosen}"] * (chosen is not None)
    parts += [f"{found} ({_format_profile_settings(found)})"] if found is not None else []
    return Check("profile", "fine", ", then ".join(parts))


def _format_profile_settings(path: Path) -> str:
    """Format the profile's settings that determine where and how jobs run."""
    try:
        values = yaml_file.read(path / "config.yaml").value or {}
    except ConfigError as error:
        return f"the profile cannot be read: {error}"
    named = [
        key for key in ("executor", "scheduler", "cores", "jobs", "keep-going") if key in values
    ]
    return ", ".join(f"{key}: {str(values[key]).lower()}" for key in named) or "default settings"


def build_unopened_study_check(error: TaskTransferError) -> Check:
    """Return a failed check for a study that cannot be opened."""
    return Check(
        "study",
        "wrong",
        str(error),
        "fix it; `tasktransfer validate` checks it again",
        error.exit_code,
    )


def check_inputs(study: Study) -> Iterator[Check]:
    """Check that a study's data and models exist."""
    for text in study.absent:
        yield Check("inputs", "lacking", text, "needed for training, not for tables and figures")
    if not study.absent:
        yield Check("inputs", "fine", f"data and models of {study.config_file} exist")


# --- output -------------------------------------------------------------------------------------


def find_exit_code(seen: Sequence[Check]) -> int:
    """Return the exit code of the first failed check, or 0."""
    return next((check.exit_code for check in seen if check.state == "wrong"), 0)


def as_json(seen: Sequence[Check]) -> dict[str, Any]:
    """Return all checks as plain data."""
    return {"exit_code": find_exit_code(seen), "checks": [asdict(check) for check in seen]}


def format_check(check: Check) -> str:
    """Format one check, with its remedy on the next line."""
    state = apply_colour(f"{check.state:<8}", COLOURS[check.state])
    text = f"{state}{check.name:<18}{check.text}"
    return f"{text}\n{'':<26}{check.remedy}" if check.remedy else text


def format_totals(seen: Sequence[Check]) -> str:
    """Format the number of checks in each state."""
    states = [check.state for check in seen]
    counts = (f"{states.count(state)} {state}" for state in COLOURS if state in states)
    return ", ".join(counts)
