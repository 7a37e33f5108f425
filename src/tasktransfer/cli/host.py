"""The program of the host (``training.host``), which the first training of a workflow starts."""

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
"""What takes long to import, and starts no thread: pyarrow does, and is left to the children."""


def main() -> None:
    """Serve until the workflow is gone."""
    from tasktransfer.cli import main as command
    from tasktransfer.training import host

    listener, workflow, key = sys.argv[1:]
    host.serve(command, MODULES, int(listener), int(workflow), key)


if __name__ == "__main__":
    main()
