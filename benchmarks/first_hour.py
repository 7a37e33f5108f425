"""Describe the environment and write the report of ``first_hour_on_a_gpu.sh``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

PEAKS = {
    "A100": 312e12,
    "A10": 125e12,
    "L4": 121e12,
    "L40": 181e12,
    "L40S": 362e12,
    "H100": 989e12,
    "H200": 989e12,
}
"""GPU → dense bfloat16 operations per second in NVIDIA's datasheet (SXM), longer names first."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("environment", "report"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--trial", action="store_true", help="allow a machine without a GPU")
    chosen = parser.parse_args()
    if chosen.what == "report":
        return write_report(chosen.out)
    found = describe_environment()
    print(json.dumps(found, indent=1))
    (chosen.out / "environment.json").write_text(json.dumps(found, indent=1) + "\n")
    if found["gpu"] is None and not chosen.trial:
        print("torch finds no GPU: install its CUDA build, or use --trial", file=sys.stderr)
        return 1
    return 0


def describe_environment() -> dict[str, Any]:
    """Return versions, and the GPU found by torch (None if there is none), with memory in GiB."""
    import torch  # noqa: PLC0415 - the report needs neither
    import transformers  # noqa: PLC0415

    found: dict[str, Any] = {
        "python": sys.version.split()[0],
        "torch": str(torch.__version__),
        "transformers": transformers.__version__,
        "cuda": torch.version.cuda,
        "gpu": None,
    }
    if torch.cuda.is_available():
        seen = torch.cuda.get_device_properties(0)
        found |= {
            "gpu": seen.name,
            "capability": f"{seen.major}.{seen.minor}",
            "memory_gib": seen.total_memory / 2**30,
            "gpus": torch.cuda.device_count(),
            "cudnn": torch.backends.cudnn.version(),
            "bfloat16": torch.cuda.is_bf16_supported(),
            "flash_attention": torch.backends.cuda.is_flash_attention_available(),
        }
    return found


def write_report(out: Path) -> int:
    """Write all steps to ``first_hour.json`` and a page, and return 1 if a step failed, else 0."""
    steps = []
    for line in (out / "steps.tsv").read_text().splitlines():
        name, code, seconds = line.split("\t")
        steps.append({"step": name, "exit_code": int(code), "seconds": int(seconds)})
    made: dict[str, Any] = {"steps": steps}
    for name in ("environment", "bench"):
        made[name] = _read_json(out / f"{name}.json")
    made["mfu"] = _compute_fractions_of_peak(made["bench"], (made["environment"] or {}).get("gpu"))
    made["slots"] = [
        _describe_slots(out, step) for step in steps if step["step"].startswith("slots-")
    ]
    (out / "first_hour.json").write_text(json.dumps(made, indent=1) + "\n")
    page = "\n".join(_format_page(made, out))
    (out / "first_hour.md").write_text(page + "\n")
    print(page)
    print(f"send back: {out / 'first_hour.json'} and {out / 'first_hour.md'}", file=sys.stderr)
    return int(any(step["exit_code"] for step in steps))


def _read_json(file: Path) -> Any:
    return json.loads(file.read_text()) if file.is_file() else None


def _compute_fractions_of_peak(bench: Any, gpu: str | None) -> list[dict[str, Any]]:
    """Return every trainer's model operations per second as fractions of the GPU's peak.

    ``of_limit``: fraction of the measured matrix product. ``mfu``: fraction of the datasheet's
    peak, None if unknown.
    """
    if bench is None:
        return []
    names = sorted(PEAKS, key=len, reverse=True)
    peak = next((PEAKS[name] for name in names if name in (gpu or "")), None)
    rows = []
    for row in bench["medians"]:
        share = row["share_of_limit_training"]
        rate = share * bench["matrix_rate"]["limit"][row["precision"]]
        told = {key: row[key] for key in ("case", "contestant", "precision")}
        mfu = rate / peak if peak else None
        rows.append({**told, "of_limit": share, "flops": rate, "mfu": mfu})
    return rows


def _describe_slots(out: Path, step: dict[str, Any]) -> dict[str, Any]:
    """Return the seconds of baselines trained in parallel, and the training runs per hour."""
    count = int(step["step"].removeprefix("slots-"))
    files = sorted(out.glob(f"slots-{count}-*.json"))
    an_hour = 3600 * count / max(1, step["seconds"]) if len(files) == count else None
    return {"slots": count, "seconds": step["seconds"], "trainings_an_hour": an_hour,
            "baselines": [_read_json(file) for file in files]}  # fmt: skip


def _format_page(made: dict[str, Any], out: Path) -> list[str]:
    lines = ["# First hour on a GPU", ""]
    lines += [f"- {key}: {value}" for key, value in (made["environment"] or {}).items()]
    lines += ["", "| step | exit code | s |", "|---|---|---|"]
    lines += [f"| {s['step']} | {s['exit_code']} | {s['seconds']} |" for s in made["steps"]]
    lines += ["", "| case | contestant | precision | of the measured product | MFU |",
              "|---|---|---|---|---|"]  # fmt: skip
    for row in made["mfu"]:
        mfu = "unknown peak" if row["mfu"] is None else f"{row['mfu']:.1%}"
        told = f"{row['case']} | {row['contestant']} | {row['precision']}"
        lines.append(f"| {told} | {row['of_limit']:.1%} | {mfu} |")
    lines += ["", "| parallel trainings | s, including preparation | trainings per hour |",
              "|---|---|---|"]  # fmt: skip
    for row in made["slots"]:
        rate = row["trainings_an_hour"]
        told = "failed" if rate is None else f"{rate:.1f}"
        lines.append(f"| {row['slots']} | {row['seconds']} | {told} |")
    for name in ("bench", "slots-1-1"):
        table = out / f"{name}.md"
        lines += ["", table.read_text().strip()] if table.is_file() else []
    return lines


if __name__ == "__main__":
    sys.exit(main())
