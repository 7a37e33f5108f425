"""What an endpoint has answered, kept by what was asked: nothing is asked twice.

A folder holds files of JSON lines, one a process that asked, each line with the digest of a request
and its answer. A line is written and flushed when its answer is there, so a process may be killed
at any time: a last line that is cut off is left out, and asked once more. Standard library only.
"""

from __future__ import annotations

import json
import os
import platform
import threading
from pathlib import Path
from typing import IO, Any

from tasktransfer.files import json_text

Answer = dict[str, Any]


class Remembered:
    """The answers in a folder; safe to use from several threads, and by several processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._answers: dict[str, Answer] = {}
        self._file: IO[str] | None = None
        self._lock = threading.Lock()
        for file in sorted(folder.glob("*.jsonl")):
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
                self._take(line)

    def _take(self, line: str) -> None:
        try:
            content = json_text.loads(line)
            self._answers[content["asked"]] = dict(content["answer"])
        except (ValueError, KeyError, TypeError):
            return  # cut off when its process was killed

    def get(self, digest: str) -> Answer | None:
        """The answer to a request; None: it was not asked yet."""
        return self._answers.get(digest)

    def put(self, digest: str, answer: Answer) -> None:
        """Keep an answer."""
        line = json.dumps({"asked": digest, "answer": answer})
        with self._lock:
            if self._file is None:
                self.folder.mkdir(parents=True, exist_ok=True)
                name = f"{platform.node()}-{os.getpid()}.jsonl"
                self._file = (self.folder / name).open("a", encoding="utf-8")
            # A line of a process that had this number, and was killed, may have no end.
            self._file.write(f"\n{line}\n" if self._file.tell() else f"{line}\n")
            self._file.flush()
            self._answers[digest] = answer

    def close(self) -> None:
        """Close the file of this process."""
        if self._file is not None:
            self._file.close()
            self._file = None
