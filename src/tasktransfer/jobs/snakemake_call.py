"""How Snakemake was called: all that the rules ask of its `workflow` object.

That object is no documented interface, so everything read from it is read here and nowhere else,
nothing of it is changed, and tests/workflow/test_snakemake_call.py holds each answer with the
Snakemake that is installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

from tasktransfer.config import overrides
from tasktransfer.errors import ConfigError, TaskTransferError, plugin_error

CONFIG_FILES = ("config.yaml", "config/config.yaml")
"""The study of a plain call, beside the main Snakefile."""


@dataclass(frozen=True, slots=True)
class SnakemakeCall:
    """What the command line said, as known when the Snakefile is read.

    ``config``: the study where a mapping was handed over in place of a file, by `module` or by an
    including Snakefile's `configfile:`; None: the study is ``config_file`` with ``overrides``.
    ``is_main``: the call of a person, and not a job of a batch system. ``on_one_machine``: jobs
    are run here. ``limited``: names of the resources with a limit.
    """

    config: Mapping[str, Any] | None
    config_file: Path
    overrides: Mapping[str, Any]
    is_main: bool
    on_one_machine: bool
    limited: frozenset[str]


def snakemake_call(workflow: Any, config: Mapping[str, Any]) -> SnakemakeCall:
    """Read how Snakemake was called.

    Args:
        workflow: what Snakemake calls so in a Snakefile.
        config: what it calls so there. Without `module` and `configfile:` it holds what the command
            line says and no more.

    Raises:
        ConfigError: several files are given with --configfile.
    """
    settings = workflow.config_settings
    handed = config != settings.overwrite_config
    given = [] if handed else list(workflow.overwrite_configfiles)
    if len(given) > 1:
        raise ConfigError(f"give one --configfile, a whole study, not {len(given)}")
    # Which executor there is, Snakemake knows only later; but a number of jobs (--jobs) only a
    # batch system has, and its jobs are workflows of their own.
    is_main = bool(workflow.is_main_process)
    return SnakemakeCall(
        config=_typed(config, settings.config) if handed else None,
        config_file=_from_here(Path(given[0]) if given else _default_file(Path(workflow.basedir))),
        overrides=overrides.from_texts(settings.config),
        is_main=is_main,
        on_one_machine=is_main and workflow.nodes is None,
        limited=frozenset(workflow.global_resources.keys()),
    )


def rerun_triggers(workflow: Any) -> frozenset[str]:
    """The names of --rerun-triggers; Snakemake knows them when the DAG is built, not before."""
    return frozenset(str(trigger) for trigger in workflow.rerun_triggers)


@contextmanager
def errors_for_snakemake() -> Iterator[None]:
    """Raise errors of ours and of plugins as those that Snakemake prints without a traceback."""
    try:
        yield
    except Exception as error:
        problem = error if isinstance(error, TaskTransferError) else plugin_error(error)
        if problem is None:
            raise
        raise WorkflowError(str(problem)) from None


def quiet_restoring() -> None:
    """Keep Snakemake from saying, of each output of a failed job that is flagged `update`, that
    there is no earlier version to restore."""
    logger.addFilter(lambda line: not line.getMessage().startswith("Cannot restore "))


def _default_file(folder: Path) -> Path:
    """Beside the main Snakefile, or beside workflow/ where that one is workflow/Snakefile."""
    folders = [folder, folder.parent] if folder.name == "workflow" else [folder]
    files = [parent / name for parent in folders for name in CONFIG_FILES]
    return next((file for file in files if file.exists()), files[0])


def _from_here(path: Path) -> Path:
    folder = Path.cwd()
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def _typed(config: Mapping[str, Any], texts: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration in which the values that `--config` gave are values again: Snakemake leaves
    the inside of ``key={...}`` text."""
    # The section of a module is a value of one of the keys of the command line.
    for section in (texts, *(value for value in texts.values() if isinstance(value, Mapping))):
        config = _with_values(config, section)
    return dict(config)


def _with_values(config: Mapping[str, Any], texts: Mapping[str, Any]) -> dict[str, Any]:
    changed = dict(config)
    for key, text in texts.items():
        value = changed.get(key)
        if isinstance(value, Mapping) and isinstance(text, Mapping):
            changed[key] = _with_values(value, text)
        elif key in changed and value == text:
            changed[key] = overrides.from_texts(text)
    return changed
