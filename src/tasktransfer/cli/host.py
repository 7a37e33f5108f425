"""The program of the host process (``training.host``), which a workflow's first run starts."""

from __future__ import annotations

import sys

PROGRAM = (sys.executable, "-P", "-m", "tasktransfer.cli.host")

MODULES = (
    "safetensors.torch",
    "tasktransfer.designs",
    "torch",
    "transformers.modeling_utils",
    "transformers.models.bert.modeling_bert",
    "transformers.models.gpt2.modeling_gpt2",
    "transformers.models.t5.modeling_t5",
)
"""Modules that are slow to import and start no threads.

pyarrow starts threads, so the child processes import it.
"""


def main() -> None:
    """Run commands for the workflow's jobs until the workflow ends."""
    from tasktransfer.cli import main as command
    from tasktransfer.training import host

    listener, workflow, key = sys.argv[1:]
    host.serve_clients(command, MODULES, int(listener), int(workflow), key)


if __name__ == "__main__":
    main()
