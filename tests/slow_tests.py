"""The files with slow tests, each with the paths whose change it tests.

    python tests/slow_tests.py origin/main

prints the files that the changes since a commit call for. Without a commit, or with one that git
does not know, it prints all of them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def of_package(*names: str) -> tuple[str, ...]:
    return tuple(f"src/tasktransfer/{name}" for name in names)


EVERY_TEST = (".ci/", "Makefile", "constraints.txt", "pyproject.toml", "tests/conftest.py")
"""Files whose change calls for every slow test."""
TRAINING = of_package(
    *("core/", "data/", "datasets/", "encoding/", "evaluation/", "fits/", "layers/", "metrics/"),
    *("models/", "tasks/", "training/"),
)
WORKFLOW = ("Snakefile", "workflow/", *of_package("core/", "files/", "jobs/", "cli/run_study.py"))
STUDY = (*TRAINING, *WORKFLOW, *of_package("config/", "designs/", "results/", "stats/"))
COMMANDS = (*STUDY, *of_package("api.py", "cli/", "operate/", "present/", "selection/"))

SHIPPED = (
    *("shipped/", "README.md", "docs/transfer.md", "docs/first_picture.py"),
    *of_package("core/", "designs/transfer/", "operate/", "results/", "selection/", "stats/"),
)
REPORT = (
    *of_package("designs/transfer/report/", "present/"),
    *("tests/report_reader.py", "tests/report_results.py", "tests/report_study.py"),
)

SLOW: dict[str, tuple[str, ...]] = {
    "contract/test_contract_accessibility.py": (
        *of_package("designs/", "present/"),
        "tests/report_reader.py",
    ),
    "contract/test_contract_choices.py": (*STUDY, "tests/contract/"),
    "contract/test_contract_choosers.py": (*STUDY, *of_package("selection/"), "tests/contract/"),
    "contract/test_contract_every_key.py": STUDY,
    "contract/test_contract_marks.py": (*STUDY, *of_package("present/"), "tests/contract/"),
    "contract/test_contract_missing.py": (*COMMANDS, "tests/contract/"),
    "contract/test_contract_packed.py": (*STUDY, "tests/contract/", "tests/fixtures/results/"),
    "contract/test_contract_packs.py": (*COMMANDS, "tests/contract/"),
    "fidelity/test_dropout.py": TRAINING,
    "fidelity/test_empathetic.py": of_package("datasets/", "fits/", "layers/"),
    "fidelity/test_gpu_path.py": (*TRAINING, "tests/fake_cuda.py", "tests/fake_device.py"),
    "fidelity/test_panel.py": of_package("datasets/", "designs/panel/"),
    "fidelity/test_real_training.py": TRAINING,
    "fidelity/test_shipped_matrix.py": SHIPPED,
    "fidelity/test_shipped_emotions.py": SHIPPED,
    "fidelity/test_shipped_friends.py": SHIPPED,
    "fidelity/test_shipped_recipe.py": SHIPPED,
    "fidelity/test_shipped_selectors.py": SHIPPED,
    "hostile/test_many_datasets.py": of_package("cli/", "data/", "datasets/", "files/"),
    "hostile/test_shards.py": (*of_package("files/", "operate/"), "tests/hostile/"),
    "unit/test_hostile_configs.py": (
        *of_package("config/", "designs/"),
        "tests/hostile_configs.py",
    ),
    "unit/test_chat_templates.py": of_package("evaluation/prompting/"),
    "unit/test_exported_elsewhere.py": of_package("datasets/", "jobs/", "models/"),
    "unit/test_fast_paths.py": TRAINING,
    "unit/test_in_batch.py": TRAINING,
    "unit/test_golden_results.py": ("benchmarks/", *COMMANDS),
    "unit/test_last_turns.py": (*STUDY, "examples/"),
    "unit/test_learning_curve.py": of_package("jobs/", "stats/"),
    "unit/test_probe_word_control.py": of_package("designs/probes/", "stats/"),
    "unit/test_report_page.py": of_package("designs/transfer/", "present/", "results/"),
    "unit/test_tiny_tokenizer.py": of_package("models/", "training/"),
    "unit/test_top1.py": of_package("designs/transfer/", "stats/"),
    "workflow/test_analysis_workflow.py": (*COMMANDS, "tests/workflow/"),
    "workflow/test_bench.py": ("benchmarks/", *TRAINING),
    "workflow/test_dag.py": WORKFLOW,
    "workflow/test_dag_repairs.py": WORKFLOW,
    "workflow/test_demo_tables.py": (*COMMANDS, "workflow/presets/", "tests/fixtures/"),
    "workflow/test_documented_commands.py": ("README.md", "docs/", "shipped/", *COMMANDS),
    "workflow/test_empathetic_planted.py": STUDY,
    "workflow/test_faults.py": (*WORKFLOW, *of_package("results/", "training/"), "tests/workflow/"),
    "workflow/test_hostile_configs_dry.py": (
        *of_package("config/", "designs/"),
        "Snakefile",
        "tests/hostile_configs.py",
    ),
    "workflow/test_low_rank_study.py": STUDY,
    "workflow/test_machines.py": COMMANDS,
    "workflow/test_own_data.py": ("docs/", *COMMANDS),
    "workflow/test_own_dialogues.py": ("docs/", "examples/", *COMMANDS),
    "workflow/test_outside_dataset.py": (*STUDY, "tests/outside_dataset/"),
    "workflow/test_panel_planted.py": STUDY,
    "workflow/test_planted_source.py": (*STUDY, "benchmarks/"),
    "workflow/test_planted_truth.py": STUDY,
    "workflow/test_probed_checkpoints.py": STUDY,
    "workflow/test_probes_design.py": STUDY,
    "workflow/test_prompted_endpoint.py": STUDY,
    "workflow/test_report.py": REPORT,
    "workflow/test_report_heatmap.py": REPORT,
    "workflow/test_run_command.py": WORKFLOW,
    "workflow/test_several_choices.py": (*STUDY, "tests/race_design.py"),
    "workflow/test_slurm.py": (*WORKFLOW, *of_package("results/", "training/"), "tests/workflow/"),
    "workflow/test_without_torch.py": (*COMMANDS, "shipped/", "tests/workflow/"),
    "workflow/test_toy_design.py": (*STUDY, "tests/toy_design.py"),
    "workflow/test_wheel.py": ("workflow/", "envs/", *of_package("cli/", "designs/__init__.py")),
}
"""File below tests/ → beginnings of paths."""


def select_files(changed: Iterable[str]) -> list[str]:
    """Return the files with slow tests that test changed paths, or have changed themselves."""
    paths = [*changed]
    if any(path.startswith(EVERY_TEST) for path in paths):
        return list_files()
    return [
        f"tests/{file}"
        for file, tested in SLOW.items()
        if any(path.startswith((*tested, f"tests/{file}")) for path in paths)
    ]


def list_files() -> list[str]:
    """Return all files with slow tests."""
    return [f"tests/{file}" for file in SLOW]


def read_changes(since: str) -> list[str] | None:
    """Return the paths changed since a commit, committed or not, or None if git cannot say."""
    command = ["git", "diff", "--name-only", "--no-renames", "--merge-base", since]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return told.stdout.splitlines() if told.returncode == 0 else None


def main(words: list[str]) -> None:
    """Print the files for the changes since the commit in ``words``."""
    changes = read_changes(words[0]) if words else None
    print(*(list_files() if changes is None else select_files(changes)), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
