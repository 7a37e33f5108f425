"""``python -m benchmarks.training_speed``: compare this trainer's speed with others."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasktransfer import cli
from tasktransfer.cli.options import parse_file, parse_positive
from tasktransfer.errors import ConfigError

if TYPE_CHECKING:
    from benchmarks.training_speed.cases import Case

RELEASE = "../shared/feta"
MINILM = Path("models/all-MiniLM-L6-v2")
CPU_LIMITS = {"encoder": 60, "decoder": 20, "encoder_decoder": 20}
"""Number of dev and of test instances evaluated on a CPU.

The whole test set of emotion_recognition, 16,000 generated answers, would take the slowest
contestant hours.
"""

DESCRIPTION = """\
Compare this trainer with the paper's toolkit (TLiDB) and Hugging Face's Trainer: training and
evaluation samples per second, seconds to the first update, peak memory, and the fraction of the
machine's matrix product speed. Contestants take turns, each in a new process, on the same
instances with the same weights. Medians are printed as Markdown and written as JSON.
"""
EXAMPLES = """\
examples (`make bench BENCH_ARGS='...'` first installs the requirements):
  --quick                          a minute: check that it runs here
  --toolkit ../TLiDB               everything: eight cases, three contestants
  --shapes base --toolkit ../TLiDB on a GPU: BERT-base, GPT-2, T5-base
  --whole-baseline --shapes base   a whole training, and the paper's grid
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the measurements, and return an exit code like the ``tasktransfer`` commands."""
    return cli.run_command(_build_parser().parse_args(arguments))


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.training_speed",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=measure, light=False)
    add = parser.add_argument
    add(
        "--data",
        metavar="FOLDER",
        default=RELEASE,
        help="folder of the release, or tiny_world for generated dialogues (default: %(default)s)",
    )
    add(
        "--weights",
        metavar="FOLDER",
        type=Path,
        help=f"the encoder's weights (default: {MINILM} if it exists, else random ones)",
    )
    add(
        "--shapes",
        choices=("tiny", "small", "base"),
        default="small",
        help="size of models with random weights: small has 6 layers of 384, base is BERT-base, "
        "GPT-2 and T5-base (default: %(default)s)",
    )
    add("--toolkit", metavar="FOLDER", type=Path, help="a clone of TLiDB; without it, skipped")
    add(
        "--cases",
        metavar="CASE",
        nargs="+",
        help="FAMILY:TASK, for example encoder:emotion_recognition (default: the eight of the "
        "benchmark)",
    )
    add(
        "--contestants",
        metavar="NAME",
        nargs="+",
        choices=("tasktransfer", "tasktransfer_float32", "tlidb", "hf_trainer"),
        default=["tasktransfer", "tasktransfer_float32", "tlidb", "hf_trainer"],
        help="default: all; tasktransfer_float32 is this trainer with precision: float32",
    )
    add(
        "--updates",
        metavar="N",
        type=parse_positive,
        help="number of timed updates of 60 (default: 2, on a GPU 40)",
    )
    add("--repeats", metavar="N", type=parse_positive, default=3, help="default: %(default)s")
    add(
        "--threads",
        metavar="N",
        type=parse_positive,
        help="CPU threads per contestant (default: number of cores)",
    )
    add(
        "--eval-limit",
        metavar="N",
        type=int,
        help="most instances of dev and of test, 0 for all (default: on a CPU "
        f"{CPU_LIMITS['encoder']}, and {CPU_LIMITS['decoder']} where answers are generated; on a "
        "GPU all)",
    )
    add(
        "--timeout",
        metavar="SECONDS",
        type=parse_positive,
        default=1800,
        help="time limit of one process (default: %(default)s)",
    )
    add("--quick", action="store_true", help="two cases, tiny models, one update, one repeat")
    add(
        "--epochs",
        metavar="N",
        type=parse_positive,
        help="epochs of --whole-baseline, for a trial (default: the paper's 30)",
    )
    add(
        "--whole-baseline",
        action="store_true",
        help="instead: time the whole few-sample baseline of each case, from process start to "
        "record (default: emotion_recognition with each family), and the paper's grid",
    )
    add(
        "--work",
        metavar="FOLDER",
        type=Path,
        default=Path("results/bench/work"),
        help="folder for instances, weights and token ids (default: %(default)s)",
    )
    add("--out", metavar="FILE", type=parse_file,
        help="JSON file; the table is written next to it (default: results/bench/<time>.json)"
        )  # fmt: skip
    return parser


def measure(chosen: argparse.Namespace) -> None:
    """Compare training and evaluation with TLiDB and Hugging Face's Trainer."""
    from benchmarks.training_speed.inputs import Source

    _check_options(chosen)
    weights = chosen.weights or (MINILM if MINILM.is_dir() else None)
    shapes = "tiny" if chosen.quick else chosen.shapes
    source = Source(chosen.data, None if chosen.quick else weights, shapes, chosen.work)
    result, text = (
        _measure_whole_baselines(chosen, source)
        if chosen.whole_baseline
        else _compare(chosen, source)
    )
    out = chosen.out or Path("results/bench") / f"{datetime.now():%Y%m%d-%H%M%S}.json"
    _write_file(out, json.dumps(result, indent=1) + "\n")
    _write_file(out.with_suffix(".md"), text)
    print(text, end="")
    print(f"written: {out} and {out.with_suffix('.md').name}", file=sys.stderr)


def _compare(chosen: argparse.Namespace, source: Any) -> tuple[dict[str, Any], str]:
    from benchmarks.training_speed import cases as known
    from benchmarks.training_speed.compare import Options, compare
    from benchmarks.training_speed.inputs import prepare_inputs
    from benchmarks.training_speed.table import format_markdown

    quick = (known.CASES[0], known.CASES[4])
    cases = _parse_cases(chosen.cases) or (quick if chosen.quick else known.CASES)
    gpu = _has_gpu()
    options = Options(
        contestants=tuple(chosen.contestants),
        updates=chosen.updates or (1 if chosen.quick else 40 if gpu else 2),
        warm_up=3 if gpu else 1,
        repeats=1 if chosen.quick else chosen.repeats,
        threads=chosen.threads or _count_cores(),
        evaluate=_get_limits(chosen, gpu),
        toolkit=chosen.toolkit,
        timeout=chosen.timeout,
    )
    result = compare(prepare_inputs(source, cases), cases, options)
    return result, format_markdown(result)


def _measure_whole_baselines(chosen: argparse.Namespace, source: Any) -> tuple[dict[str, Any], str]:
    from benchmarks.training_speed.cases import CASES
    from benchmarks.training_speed.whole import format_markdown, measure_baselines

    first = CASES[0].task
    cases = _parse_cases(chosen.cases) or tuple(case for case in CASES if case.task == first)
    result = measure_baselines(source, cases, chosen.threads or _count_cores(), chosen.epochs)
    return result, format_markdown(result)


def _check_options(chosen: argparse.Namespace) -> None:
    if chosen.eval_limit is not None and chosen.eval_limit < 0:
        raise ConfigError(
            f"--eval-limit {chosen.eval_limit}: The number is negative. Set 0 (all) or more."
        )
    if chosen.data != "tiny_world" and not Path(chosen.data).is_dir():
        raise ConfigError(
            f"--data {chosen.data}: The folder does not exist. Set the folder of the release, or "
            "tiny_world."
        )


def _parse_cases(names: Sequence[str] | None) -> tuple[Case, ...]:
    from benchmarks.training_speed.cases import parse_case

    return tuple(parse_case(name) for name in names or ())


def _get_limits(chosen: argparse.Namespace, gpu: bool) -> dict[str, int | None]:
    if chosen.eval_limit is not None:
        return dict.fromkeys(CPU_LIMITS, chosen.eval_limit or None)
    if chosen.quick:
        return dict.fromkeys(CPU_LIMITS, 8)
    return dict.fromkeys(CPU_LIMITS, None) if gpu else dict(CPU_LIMITS)


def _has_gpu() -> bool:
    from tasktransfer.training.device import list_devices

    return bool(list_devices())


def _count_cores() -> int:
    import os

    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


def _write_file(file: Path, text: str) -> None:
    from tasktransfer.files import replace_file

    with replace_file(file) as part:
        part.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
