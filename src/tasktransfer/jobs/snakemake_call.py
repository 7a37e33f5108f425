"""The command line of Snakemake, read from its `workflow` object.

That object is not a documented interface. It is therefore read only here and never changed, and
tests/workflow/test_snakemake_call.py checks each value with the installed Snakemake.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

from tasktransfer.config import from_texts
from tasktransfer.errors import ConfigError, TaskTransferError, as_plugin_error

CONFIG_FILES = ("config.yaml", "config/config.yaml")
"""Config files of a call without --configfile, next to the main Snakefile."""


@dataclass(frozen=True, slots=True)
class SnakemakeCall:
    """The command line, as far as it is known when the Snakefile is read.

    Attributes:
        config: the study as a mapping, from `module` or from an including Snakefile's
            `configfile:`. None if the study is ``config_file`` with ``overrides``.
        is_main: True for a user's call, False for a job of a batch system.
        on_one_machine: True if jobs run on this machine.
        limited: names of the resources with a limit.
    """

    config: Mapping[str, Any] | None
    config_file: Path
    overrides: Mapping[str, Any]
    is_main: bool
    on_one_machine: bool
    limited: frozenset[str]


def read_snakemake_call(workflow: Any, config: Mapping[str, Any]) -> SnakemakeCall:
    """Read the command line with which Snakemake was called.

    Args:
        workflow: the object `workflow` in a Snakefile.
        config: the object `config` in a Snakefile. Without `module` and `configfile:` it contains
            only values of the command line.

    Raises:
        ConfigError: several files are given with --configfile.
    """
    settings = workflow.config_settings
    handed = config != settings.overwrite_config
    given = [] if handed else list(workflow.overwrite_configfiles)
    if len(given) > 1:
        raise ConfigError(
            f"--configfile: The option has {len(given)} files, but a study has one. Specify one "
            "file with the complete study."
        )
    # The executor is not known yet. But only a batch system has a number of jobs (--jobs), and its
    # jobs are separate workflows.
    is_main = bool(workflow.is_main_process)
    return SnakemakeCall(
        config=_convert_texts(config, settings.config) if handed else None,
        config_file=_shorten_path(
            Path(given[0]) if given else _locate_default_config(Path(workflow.basedir))
        ),
        overrides=from_texts(settings.config),
        is_main=is_main,
        on_one_machine=is_main and workflow.nodes is None,
        limited=frozenset(workflow.global_resources.keys()),
    )


def get_rerun_triggers(workflow: Any) -> frozenset[str]:
    """Return the rerun triggers, which Snakemake knows only when it builds the DAG."""
    return frozenset(str(trigger) for trigger in workflow.rerun_triggers)


@contextmanager
def convert_errors() -> Iterator[None]:
    """Convert errors of this package and of plugins to Snakemake errors without a traceback."""
    try:
        yield
    except Exception as error:
        problem = error if isinstance(error, TaskTransferError) else as_plugin_error(error)
        if problem is None:
            raise
        raise WorkflowError(str(problem)) from None


def hide_restore_messages() -> None:
    """Suppress Snakemake's message that a failed job's outputs cannot be restored.

    It prints one for each output that is flagged `update`.
    """
    logger.addFilter(lambda line: not line.getMessage().startswith("Cannot restore "))


def _locate_default_config(folder: Path) -> Path:
    """Find the config file next to the main Snakefile, or next to its folder workflow/."""
    folders = [folder, folder.parent] if folder.name == "workflow" else [folder]
    files = [parent / name for parent in folders for name in CONFIG_FILES]
    return next((file for file in files if file.exists()), files[0])


def _shorten_path(path: Path) -> Path:
    folder = Path.cwd()
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def _convert_texts(config: Mapping[str, Any], texts: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config in which texts from ``--config`` are parsed as values.

    Snakemake leaves the content of ``key={...}`` as text.
    """
    # The section of a module is a value of one of the keys of the command line.
    for section in (texts, *(value for value in texts.values() if isinstance(value, Mapping))):
        config = _convert_section(config, section)
    return dict(config)


def _convert_section(config: Mapping[str, Any], texts: Mapping[str, Any]) -> dict[str, Any]:
    changed = dict(config)
    for key, text in texts.items():
        value = changed.get(key)
        if isinstance(value, Mapping) and isinstance(text, Mapping):
            changed[key] = _convert_section(value, text)
        elif key in changed and value == text:
            changed[key] = from_texts(text)
    return changed
