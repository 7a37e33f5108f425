"""Programs named in the git configuration of a folder of shards are not started."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from finished_stages import finish_all, opened
from tasktransfer import cli
from tasktransfer.operate.commons.checkout import read_commit
from tasktransfer.operate.pack import pack_results

HOOKS = (
    *("applypatch-msg", "commit-msg", "fsmonitor-watchman", "p4-changelist", "post-applypatch"),
    *("post-checkout", "post-commit", "post-index-change", "post-merge", "post-rewrite"),
    *("post-update", "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit"),
    *("pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg", "proc-receive"),
    *("push-to-checkout", "reference-transaction", "sendemail-validate", "update"),
)
PROGRAMS = {
    "core.fsmonitor": "{}",
    "core.pager": "{}",
    "core.editor": "{}",
    "core.sshCommand": "{}",
    "core.gitProxy": "{}",
    "core.askPass": "{}",
    "core.alternateRefsCommand": "{}",
    "pager.log": "{}",
    "pager.status": "{}",
    "diff.external": "{}",
    "diff.shard.textconv": "{}",
    "diff.shard.command": "{}",
    "merge.shard.driver": "{}",
    "filter.shard.clean": "{}",
    "filter.shard.smudge": "{}",
    "filter.shard.process": "{}",
    "gpg.program": "{}",
    "gpg.ssh.program": "{}",
    "log.showSignature": "true",
    "credential.helper": "!{}",
    "alias.log": "!{}",
    "alias.status": "!{}",
    "alias.rev-parse": "!{}",
    "uploadpack.packObjectsHook": "{}",
    "remote.origin.uploadpack": "{}",
    "remote.origin.receivepack": "{}",
    "remote.origin.vcs": "ext",
    "remote.origin.url": "ext::{}",
    "trailer.sign.command": "{}",
    "interactive.diffFilter": "{}",
    "sequence.editor": "{}",
    "submodule.shards.update": "!{}",
}


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a study and ``shards/``, a checkout whose programs all write the returned file."""
    monkeypatch.chdir(tmp_path)
    study = opened(results="lab")
    finish_all(study, measured=True)
    pack_results(study, Path("shards/lab.parquet"), by="Lab A", with_text=True)
    opened()
    canary = tmp_path / "canary"
    program = executable(tmp_path / "program", canary)
    git("init", "--quiet")
    git("add", ".")
    git("-c", "user.name=Ada", "-c", "user.email=a@b.c", "commit", "--quiet", "-m", "shards")
    Path("shards/.gitattributes").write_text("* filter=shard diff=shard merge=shard\n")
    for hook in HOOKS:
        executable(Path("shards/.git/hooks", hook), canary)
    for key, value in PROGRAMS.items():
        git("config", key, value.format(program))
    included = Path("shards/.git/included")
    included.write_text(f"[core]\n\tfsmonitor = {program}\n")
    git("config", "include.path", str(included.resolve()))
    assert not canary.exists()
    return canary


def executable(file: Path, canary: Path) -> Path:
    file.write_text(f"#!/bin/sh\necho run >> {canary}\n")
    file.chmod(0o755)
    return file


def git(*words: str) -> None:
    subprocess.run(["git", "-C", "shards", *words], check=True, capture_output=True)


def test_the_trap_snaps(canary: Path) -> None:
    """Without this, the test below could not fail."""
    subprocess.run(["git", "-C", "shards", "status"], check=False, capture_output=True)
    assert canary.exists()


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--json"]])
@pytest.mark.parametrize("inside", [False, True])
def test_nothing_of_a_foreign_checkout_is_run(
    options: list[str], inside: bool, canary: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not even git is started, which represents all programs that it might start."""
    programs = tmp_path / "bin"
    programs.mkdir()
    executable(programs / "git", canary)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    if inside:
        config = Path("study.yaml").read_text()
        monkeypatch.chdir("shards")
        Path("study.yaml").write_text(config)
        for name in ("pyarrow", "json", "tasktransfer", "sitecustomize"):
            Path(f"{name}.py").write_text(f"open({str(canary)!r}, 'w')\n")
    words = ["import", "." if inside else "shards", "--config", "study.yaml", *options]
    assert cli.main(words) == 0
    assert not canary.exists()


def test_a_commit_is_read_from_small_regular_files_alone(tmp_path: Path) -> None:
    git_folder, commit = tmp_path / ".git", "0123456789" * 4
    head = git_folder / "HEAD"
    assert read_commit(tmp_path) == ""
    git_folder.mkdir()
    assert read_commit(tmp_path) == ""
    (tmp_path / "secret").write_text(commit)
    for branch in ("refs/heads/../../secret", "refs/heads/../../../secret", "/etc/passwd"):
        head.write_text(f"ref: {branch}\n")
        assert read_commit(tmp_path) == ""
    for text in (f"{commit} \x1b[2J", "a" * 100_000, "\0", f"{commit[:-1]}G"):
        head.write_text(text)
        assert read_commit(tmp_path) == ""
    head.unlink()
    os.mkfifo(head)
    assert read_commit(tmp_path) == ""
    head.unlink()
    head.symlink_to(tmp_path / "secret")
    assert read_commit(tmp_path) == ""
    head.unlink()
    head.write_text("ref: refs/heads/main\n")
    (git_folder / "refs/heads").mkdir(parents=True)
    (git_folder / "refs/heads/main").write_text(f"{commit}\n")
    (tmp_path / "below").mkdir()
    assert read_commit(tmp_path / "below") == commit
