"""Invalid configs of the three designs other than transfer, and a process that opens them.

python hostile_configs.py FOLDER     # cases of FOLDER/cases.json, in order; one line of JSON each
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from tasktransfer.cli import main
from tasktransfer.designs.opening import open_study_for_call
from tasktransfer.errors import TaskTransferError
from tasktransfer.jobs.snakemake_call import SnakemakeCall

PRESETS = Path(__file__).resolve().parents[1] / "workflow" / "presets"
SECONDS, MEBIBYTES = 10, 400
"""Limits for opening a config: processor seconds (the machine may be busy) and memory."""
NO_END = 60
MISSING = object()
LONG = "x" * 300
NAN, INFINITY = float("nan"), float("inf")
TINY = {"family": "encoder", "checkpoint": "tiny"}


@dataclass(frozen=True)
class Case:
    """An invalid config. ``named``: parts of the message: key, and value or remedy."""

    name: str
    text: str
    named: tuple[str, ...]


@dataclass(frozen=True)
class Seen:
    """Result of a command.

    It has an exit code (-1 for a traceback, -2 for a timeout), processor seconds, peak MiB, and
    stderr.
    """

    code: int
    seconds: float
    mebibytes: int
    said: str


def base(design: str) -> dict[str, Any]:
    study: dict[str, Any] = yaml.safe_load((PRESETS / f"{design}-demo.yaml").read_text())
    if design == "probes":
        study["data"]["release"] = "world"
    return study | {"results": "results"}


def changed(study: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Return a study with another value at a dotted key; numbers are indices of lists."""
    study = copy.deepcopy(study)
    place: Any = study
    *above, last = (int(name) if name.isdigit() else name for name in key.split("."))
    for name in above:
        place = place[name] if isinstance(place, list) else place.setdefault(name, {})
    if value is MISSING:
        del place[last]
    else:
        place[last] = value
    return study


def format_place(key: str) -> str:
    """Format a dotted key as in messages: ``models[0].name``."""
    first, *names = key.split(".")
    return first + "".join(f"[{name}]" if name.isdigit() else f".{name}" for name in names)


COMMON: list[tuple[str, Any, str]] = [
    ("study", None, "must be text"),
    ("results", "/proc/x", "cannot be created"),
    ("results", f"results/{LONG}", "a name of 300 bytes, but at most 255"),
    ("results", "x/" * 2000 + "x", "a path of 4,001 bytes, but at most 3,000"),
    ("data.release", LONG, "a name of 300 bytes"),
    ("models.0.name", LONG, "at most 100"),
    ("models", [], "1 or more items"),
    ("models", None, "must be a list"),
    ("seeds", 10**9, "must be a number of seeds from 1 to 1000"),
    ("seeds", [1, 1], "duplicates seeds[0]"),
    ("training.learning_rate", NAN, "must be a finite number"),
    ("training.max_grad_norm", INFINITY, "must be a finite number"),
    ("training.batch_size", 10**9, "a number of at most 100000"),
    ("checkpoints.keep", ["experts"], "The kind of stage 'experts' is unknown"),
    ("trainig", {}, "Did you mean 'training'?"),
]
"""Key, value and expected message, for a study of any design."""

OWN: dict[str, list[tuple[str, Any, str]]] = {
    "empathetic": [
        ("retrieval.methods", [], "1 or more items"),
        ("retrieval.methods.0", "emoprepend-33", "there are only 32. Reduce"),
        ("generation.methods.0", "bas", "Did you mean 'base'?"),
        ("retrieval.model", "writer", "has family encoder_decoder"),
        ("classifier.model", "nobody", "The model 'nobody' is unknown"),
        ("classifier", MISSING, "needs the section classifier"),
        ("models.2.second_encoder", "reader", "has a second encoder, too"),
        ("models.3.second_encoder", "nobody", "The model 'nobody' is unknown"),
        ("models.2.checkpoint", "built", "cannot be built"),
        ("models.0.architecture.layers", 10**6, "a number of at most 100"),
        ("models.0.architecture.heads", 7, "does not divide the value of hidden (64)"),
        ("evaluation.decoding.groups", 10**9, "a number of at most 100"),
        ("emotions.epochs", 10**9, "a number of at most 10000"),
        ("evaluation.shuffles", 10**9, "a number of at most 1000"),
        ("data.releases", {"EmpatheticDialog": "x"}, "Did you mean 'EmpatheticDialogues'?"),
        ("controls", ["golden"], "Did you mean 'gold'?"),
    ],
    "panel": [
        ("domains.0", "Harbor", "Did you mean 'Harbour'?"),
        ("rated_sets", [], "1 or more items"),
        ("methods", ["panels"], "Did you mean 'panel'?"),
        ("joint.epochs", 10**9, "a number of at most 10000"),
        ("labeller", MISSING, "pairs.labels is labeller"),
        ("labeller.model", "nobody", "The model 'nobody' is unknown"),
        ("few_shot.sets", [], "1 or more items"),
        ("few_shot.sets.0", "Market", "Did you mean 'Market_Tiny'?"),
        ("few_shot.draws", 10**7, "a number of at most 100"),
        ("few_shot.percentages", [*range(1, 91)], "a list of at most 20 items"),
        ("selection.personas", [], "1 or more items"),
        ("selection.candidates", 10**9, "a number of at most 1000"),
        ("reduction", 10**9, "a number of at most 1024"),
        ("data.few_sample", True, "no dataset of this design has a few-sample setting"),
        ("models.0.family", "decoder", "which the panel does not train"),
        ("models.0.checkpoint", "built", "cannot train a model"),
    ],
    "probes": [
        ("probes.tasks", [], "1 or more items"),
        ("probes.tasks", ["RecentTopics"], "Did you mean 'RecentTopic'?"),
        ("probes.tasks", ["RecentTopic", "PersonalInfo"], "a probe of PersonaChat"),
        ("training.epochs", 10**9, "a number of at most 10000"),
        ("probes.snapshots", [], "1 or more items"),
        ("probes.snapshots", [10**6], "training.epochs is 4"),
        ("probes.C", 0, "must be a number greater than 0"),
        ("probes.max_iter", 10**9, "a number of at most 100000"),
        ("corpora.0", "MultiWoz", "Did you mean 'MultiWOZ'?"),
        ("data.few_sample", True, "no dataset of this design has a few-sample setting"),
        ("models.0.architecture.layers", 10**6, "a number of at most 100"),
        ("models.0.architecture.kind", "gru", "must be 'lstm'"),
        ("models.0.checkpoint", "tiny", "A model needs either an architecture or a checkpoint"),
        ("models.0.family", "encoder", "an architecture is an encoder_decoder"),
        ("models.0.revision", "main", "only models on the hub have revisions"),
        ("models.0", {"name": "x", **TINY, "checkpoint": "built"}, "cannot train a model"),
    ],
}

BROKEN: dict[str, tuple[str, str]] = {
    "duplicate key": ("seeds: 2\n", "seeds: The key is on the lines"),
    "tab": ("x:\n\ty: 1\n", "This is not valid YAML"),
    "alias of nothing": ("x: *nobody\n", "This is not valid YAML"),
    "alias of itself": ("x: &x [*x]\n", "contains itself"),
    "tag": ("x: !!python/object:os.system {}\n", "is not allowed"),
    "open quote": ('x: "abc\n', "This is not valid YAML"),
    "null as a key": ("null: 1\n", "The key is not text"),
    "date as a key": ("2020-01-01: 1\n", "The key is not text"),
    "number as a key": ("3: 1\n", "The key is not text"),
    "impossible date": ("x: 2022-99-99\n", "A value cannot be read"),
    "two documents": ("---\nstudy: s\n", "This is not valid YAML"),
}
"""Name → text appended to a file, and the expected message."""


def cases() -> Iterator[Case]:
    for design, own in OWN.items():
        study = base(design)
        for number, (key, value, said) in enumerate([*COMMON, *own]):
            text = yaml.safe_dump(changed(study, key, value), sort_keys=False)
            # For a missing section or a cycle, the message names the key that needs it.
            place = format_place(key)
            named = "" if value is MISSING or "second_encoder" in key else place
            yield Case(f"{design} {number}: {place}", text, (named, said))
    for (name, (end, said)), design in zip(BROKEN.items(), [*OWN] * len(BROKEN), strict=False):
        text = yaml.safe_dump(base(design), sort_keys=False)
        yield Case(f"{design}: {name}", text + end, (said,))
    yield from _of_several_keys()


def _of_several_keys() -> Iterator[Case]:
    probes = base("probes")
    both = changed(
        changed(probes, "corpora", ["MultiWOZ", "PersonaChat"]), "probes.tasks", ["RecentTopic"]
    )
    circle = base("empathetic")
    circle["models"] += [
        {"name": "one", **TINY, "second_encoder": "two"},
        {"name": "two", **TINY, "second_encoder": "one"},
    ]
    for name, study, named in (
        ("a corpus without a probe", both, ("corpora[1]", "contains no probe of PersonaChat")),
        ("a circle of models", circle, ("models[4].second_encoder", "has a second encoder, too")),
        (
            "empathetic: too many runs",
            changed(base("empathetic"), "seeds", 1000),
            ("seeds (1000)",),
        ),
        ("probes: too many runs", changed(probes, "seeds", 1000), ("seeds (1000)", "50,000")),
        (
            "probes: too many snapshots",
            changed(probes, "training.epochs", 10_000),
            ("training.epochs (10000)", "probes.snapshots (all)"),
        ),
        ("no section", {"study": "s", "design": "empathetic"}, ("models: The key is missing",)),
    ):
        yield Case(name, yaml.safe_dump(study, sort_keys=False), named)


# --- a process that opens them --------------------------------------------------------------------


def seen(command: str, file: str) -> Seen:
    """Run a command in a forked child process, and return its result."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(NO_END)
        told = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(told):
            try:
                code = _opened(file) if command == "-n" else main([command, "--config", file])
            except BaseException:
                traceback.print_exc()
                code = -1
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        left = Seen(code, time.process_time(), peak, told.getvalue()[-3000:])
        os.write(write, json.dumps(asdict(left)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return Seen(**json.loads(answer)) if answer else Seen(-2, NO_END, 0, "")


def _opened(file: str) -> int:
    """Open a study like the Snakefile in a user's call, and return the exit code."""
    call = SnakemakeCall(None, Path(file), {}, True, True, frozenset())
    try:
        open_study_for_call(call)
    except TaskTransferError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _serve(folder: Path) -> None:
    os.chdir(folder)
    for file in json.loads(Path("cases.json").read_text()):
        for command in ("plan", "validate", "-n"):
            print(json.dumps(asdict(seen(command, file))), flush=True)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
