"""``python -m tasktransfer``."""

from tasktransfer.cli import run_and_leave

run_and_leave()
