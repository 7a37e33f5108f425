"""Files from others are opened only if they are regular, and read only up to a limit."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from tasktransfer.files.untrusted import open_regular, read_regular


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    file, link = tmp_path / "a", tmp_path / "link"
    file.write_bytes(b"text")
    link.symlink_to(file)
    assert read_regular(file, 4) == b"text"
    assert read_regular(link, 4) == b"text"
    with open_regular(file, follow_links=False) as stream:
        assert stream.read() == b"text"


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    (tmp_path / "lost").symlink_to(tmp_path / "nowhere")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "socket"))
        refusals = {
            "pipe": "a named pipe",
            "zero": "a device",
            "socket": "a socket",
            "folder": os.strerror(errno.EISDIR),
            "lost": os.strerror(errno.ENOENT),
            "nul\0": "invalid character",
        }
        for name, reason in refusals.items():
            with pytest.raises(OSError) as error:
                open_regular(tmp_path / name)
            assert reason in error.value.strerror


def test_a_link_is_refused_on_request(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with pytest.raises(OSError, match="it is a link"):
        read_regular(tmp_path / "link", 4, follow_links=False)


def test_a_large_file_is_refused_by_its_size(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    with pytest.raises(OSError, match="larger than 4 bytes") as error:
        read_regular(tmp_path / "file", 4)
    assert error.value.errno == errno.EOVERFLOW
