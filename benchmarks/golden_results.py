"""Build tables, figures and reports of all packs in this repository, to compare code versions.

python -m benchmarks.golden_results OUT [--packs NAME ...]

Each pack in shipped/ and tests/fixtures/ is merged into OUT/<preset>/results, one process per pack.
The commands ``collect``, ``statistics``, ``figures`` and ``report`` run there, and ``explain``
traces some cells, with its output in explained.txt. A complete folder is kept: delete it to build
it again. Build the folders of two commits, and compare them with ``benchmarks.compare_results``.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple, TextIO

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = ("collect", "statistics", "figures", "report")
IN_ZIP = "demo.parquet"
"""Name of the pack in a fixture's zip file."""
FINISHED = "seconds.txt"
"""File in the folder of a pack that is complete."""
LOG = "log.txt"
"""Output of a pack's commands."""

EXPLAINED = {
    "adapters": ["table1 DailyDialog topic_classification"],
    "base-models": [
        "table2 DailyDialog mpnet pretrain_finetune",
        "DailyDialog mpnet pretrain_finetune dialogue_act_classification topic_classification",
    ],
    "demo": [
        "table2 DailyDialog tiny-bert multitask_finetune",
        "DailyDialog tiny-bert multitask emotion_recognition topic_classification",
        "DailyDialog tiny-bert baseline topic_classification",
        "table3 DailyDialog topic_classification "
        "adversarial_response_selection+emotion_recognition tiny-bert pretrain_finetune",
    ],
    "empathetic-demo": [
        "by_emotion afraid EmoPrepend-1 emoprepend-1 retrieval",
        "table2 Base base generation ED PPL",
        "differences EmoPrepend-1 emoprepend-1 generation ED 'log PPL'",
    ],
    "minilm-controls": ["table2 DailyDialog minilm pretrain_finetune"],
    "minilm-emotions": ["Friends minilm pretrain_finetune MER EER"],
    "dailydialog-to-meld": ["Friends minilm baseline MER"],
    "friends-recipe": ["Friends minilm pretrain_finetune QA CI"],
    "minilm-heads": ["Friends minilm baseline MER"],
    "minilm-matrix": [
        "regret DailyDialog minilm multitask esm_logme",
        "table1 DailyDialog causal_emotion_entailment",
        "DailyDialog minilm multitask DAC ER",
        "prompted DailyDialog smollm2-135m DAC",
    ],
    "minilm-recipe": ["DailyDialog minilm baseline TC", "Friends minilm baseline RE"],
    "minilm-study": ["DailyDialog minilm multitask DAC ARS", "DailyDialog minilm baseline ARS"],
    "panel-demo": [
        "table3 Harbour_Tiny panel",
        "experts_by_set collection 'own - others' Orchard_Tiny",
        "tests collection cosine-last Harbour_Tiny 1",
    ],
    "probes-demo": [
        "claims MultiWOZ ActionSelect between",
        "table6 'as printed' BiLSTM-attention hard",
        "beyond MultiWOZ BiLSTM-attention 'epoch 1' ActionSelect shuffled",
    ],
}
"""Name of a pack → words of cells that ``explain`` traces."""


class Pack(NamedTuple):
    """A file of packed records, and the preset of their study."""

    name: str
    file: Path
    preset: Path


def list_packs() -> dict[str, Pack]:
    """Return the packs of this repository by the names of their presets, smallest first."""
    presets = ROOT / "workflow" / "presets"
    files = [*(ROOT / "tests" / "fixtures").glob("*.zip"), *(ROOT / "shipped").glob("*.parquet")]
    packs = {}
    for file in sorted(files, key=lambda file: file.stat().st_size):
        name = {"minilm-adapters": "adapters"}.get(file.stem, file.stem)
        packs[name] = Pack(name, file, presets / f"{name}.yaml")
    return packs


def build_results(pack: Pack, out: Path) -> float:
    """Build everything that the commands write for a pack, and return the seconds.

    The working directory becomes ``out/<name>``, where the preset's data and models do not exist:
    the results depend on the records only.

    Raises:
        RuntimeError: a command failed.
    """
    from tasktransfer.cli import main  # noqa: PLC0415

    folder = out / pack.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.chdir(folder)
    shutil.copyfile(pack.preset, "study.yaml")
    start = time.perf_counter()
    with (
        Path(LOG).open("w", encoding="utf-8") as log,
        _write_output_to(log),
        _unpack(pack) as records,
    ):
        for command in (["merge", str(records)], *([name] for name in COMMANDS)):
            if main([*command, "--config", "study.yaml"]) != 0:
                log.flush()
                raise RuntimeError(f"{pack.name}: {command[0]} failed. Read {folder / LOG}.")
        (results,) = Path("results").iterdir()
        _explain_cells(pack.name, results / "explained.txt")
    seconds = time.perf_counter() - start
    Path(FINISHED).write_text(f"{seconds:.1f}\n", encoding="utf-8")
    return seconds


def _explain_cells(name: str, file: Path) -> None:
    """Write explanations or errors to a file, each below its command, with its exit code."""
    from tasktransfer.cli import main  # noqa: PLC0415

    with file.open("w", encoding="utf-8") as out, _write_output_to(out):
        for words in EXPLAINED.get(name, ()):
            print(f"\n$ explain {words}")
            code = main(["explain", *shlex.split(words), "--config", "study.yaml"])
            print(f"exit code {code}")


@contextlib.contextmanager
def _write_output_to(log: TextIO) -> Iterator[None]:
    with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
        yield


@contextlib.contextmanager
def _unpack(pack: Pack) -> Iterator[Path]:
    if pack.file.suffix != ".zip":
        yield pack.file
        return
    with zipfile.ZipFile(pack.file) as archive:
        yield Path(archive.extract(IN_ZIP, "packed"))
    shutil.rmtree("packed")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return its exit code."""
    packs = list_packs()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path, help="folder with one folder per pack")
    what = f"names of packs (default: all): {', '.join(packs)}"
    parser.add_argument("--packs", metavar="NAME", nargs="+", choices=packs, help=what)
    chosen = parser.parse_args(arguments)
    failed = 0
    for name in chosen.packs or packs:
        finished = chosen.out / name / FINISHED
        if finished.exists():
            print(f"{name}: already built", flush=True)
            continue
        try:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                seconds = process.submit(build_results, packs[name], chosen.out.resolve()).result()
            print(f"{name}: {seconds:.1f} seconds", flush=True)
        except RuntimeError as error:
            print(error, file=sys.stderr, flush=True)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
