"""The measurements as Markdown: one table per case, and the skipped contestants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

OWN = "tasktransfer"
NAMES = {
    OWN: "this trainer",
    "tasktransfer_float32": "this trainer, float32",
    "tlidb": "TLiDB",
    "hf_trainer": "HF Trainer",
}
HEAD = (
    "contestant",
    "training /s",
    "×",
    "dev /s",
    "test /s",
    "×",
    "start-up s",
    "processor s",
    "memory MiB",
    "GPU MiB",
    "of limit, training",
    "of limit, test",
)


def format_markdown(result: Mapping[str, Any]) -> str:
    """Format the result of ``compare``.

    × is this trainer's speed divided by the contestant's.
    """
    rows: Sequence[Mapping[str, Any]] = result["medians"]
    parts = [_describe_machine(result)]
    for case in dict.fromkeys(row["case"] for row in rows):
        mine = [row for row in rows if row["case"] == case]
        parts.append(
            f"### {case}\n\n{_describe_volume(result, case, mine)}\n\n{_format_table(mine)}"
        )
    notes = [f"* {NAMES[c]} was skipped: {why}" for c, why in result["skipped"].items()]
    notes += [f"* failed: {what}: {why}" for what, why in result["failed"].items()]
    if notes:
        parts.append("\n".join(notes))
    return "\n\n".join(parts) + "\n"


def _describe_machine(result: Mapping[str, Any]) -> str:
    machine, rate = result["machine"], result["matrix_rate"]
    devices = sorted({row["device"] for row in result["medians"]})
    reached = ", ".join(
        f"{rate['limit'][name] / 1e9:,.0f} GFLOP/s in {name} ({min(found) / 1e9:,.0f} to "
        f"{max(found) / 1e9:,.0f} in {len(found)} measurements)"
        for name, found in rate["each"].items()
    )
    return (
        f"## Training and evaluation, {result['made']}\n\n"
        f"{machine['platform']}, {machine['threads']} of {machine['cores']} cores, "
        f"{' and '.join(devices)}; matrix products reach {reached}. Samples per second, medians; "
        "\"of limit\": the model's operations on real tokens, as fraction of the matrix product's "
        "speed in the same precision; ×: this trainer's speed divided by the contestant's; "
        "processor s: processor time of the whole process, independent of other load."
    )


def _describe_volume(
    result: Mapping[str, Any], case: str, rows: Sequence[Mapping[str, Any]]
) -> str:
    volume = result["volumes"][case]
    most = volume["evaluate"]
    evaluated = "all of dev and test" if most is None else f"at most {most} of dev and of test"
    precisions = ", ".join(
        dict.fromkeys(f"{NAMES[r['contestant']]} {r['precision']}" for r in rows)
    )
    return f"{volume['updates']} updates of 60, {evaluated}, {rows[0]['runs']} runs; {precisions}."


def _format_table(rows: Sequence[Mapping[str, Any]]) -> str:
    own = next((row for row in rows if row["contestant"] == OWN), None)
    lines = [HEAD, tuple("---" if i == 0 else "---:" for i in range(len(HEAD)))]
    lines += [_format_row(row, own) for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _format_row(row: Mapping[str, Any], own: Mapping[str, Any] | None) -> tuple[str, ...]:
    def format_ratio(key: str) -> str:
        return "" if own is None or row is own else f"{own[key] / row[key]:.2f}"

    gpu = row["gpu_memory_mb"]
    return (
        NAMES[row["contestant"]],
        f"{row['train_samples_per_second']:.1f}",
        format_ratio("train_samples_per_second"),
        f"{row['dev_samples_per_second']:.1f}",
        f"{row['test_samples_per_second']:.1f}",
        format_ratio("test_samples_per_second"),
        f"{row['start_up_seconds']:.1f}",
        f"{row['processor_seconds']:.0f}",
        f"{row['memory_mb']:,.0f}",
        "" if gpu is None else f"{gpu:,.0f}",
        f"{100 * row['share_of_limit_training']:.1f} %",
        f"{100 * row['share_of_limit_test']:.1f} %",
    )
