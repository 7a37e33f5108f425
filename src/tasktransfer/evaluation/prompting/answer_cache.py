"""A cache of an endpoint's answers by request, so that no request is sent twice.

A folder contains one file of JSON lines per process. Each line has the digest of a request and its
answer. A line is written and flushed as soon as its answer arrives, so a process may be killed at
any time: an incomplete last line is ignored, and its request is sent again. This module uses the
standard library only.
"""

from __future__ import annotations

import json
import os
import platform
import threading
from pathlib import Path
from typing import IO, cast

from tasktransfer.evaluation.prompting.answers import Answer
from tasktransfer.files import json_text


class AnswerCache:
    """The cached answers in a folder, safe for several threads and processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._answers: dict[str, Answer] = {}
        self._file: IO[str] | None = None
        self._lock = threading.Lock()
        for file in sorted(folder.glob("*.jsonl")):
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
                self._store_line(line)

    def _store_line(self, line: str) -> None:
        try:
            content = json_text.loads(line)
            self._answers[content["request"]] = cast(Answer, dict(content["answer"]))
        except (ValueError, KeyError, TypeError):
            return  # The line is incomplete, because its process was killed.

    def get(self, digest: str) -> Answer | None:
        """Return the cached answer to a request, given its digest, or None."""
        return self._answers.get(digest)

    def put(self, digest: str, answer: Answer) -> None:
        """Store the answer to a request under the request's digest."""
        line = json.dumps({"request": digest, "answer": answer})
        with self._lock:
            if self._file is None:
                self.folder.mkdir(parents=True, exist_ok=True)
                name = f"{platform.node()}-{os.getpid()}.jsonl"
                self._file = (self.folder / name).open("a", encoding="utf-8")
            # The last line of a killed process with the same id may be incomplete.
            self._file.write(f"\n{line}\n" if self._file.tell() else f"{line}\n")
            self._file.flush()
            self._answers[digest] = answer

    def close(self) -> None:
        """Close the file to which this process appends answers."""
        if self._file is not None:
            self._file.close()
            self._file = None
