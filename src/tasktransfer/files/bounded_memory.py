"""Let a library take only so much memory while it unpacks what others wrote.

A few kilobytes of Parquet or Arrow can become gigabytes, and no library has a limit of its own.
Standard library only.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def bounded_memory(more: int) -> Iterator[None]:
    """Let this process take at most ``more`` bytes of data on top of what it has.

    What takes more raises MemoryError. The limit is that of the whole process (RLIMIT_DATA), so
    that nothing else should run in the block. Only Linux keeps it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    taken = _taken()
    limit = taken + more
    is_limited = soft != resource.RLIM_INFINITY and soft <= limit
    if taken == 0 or is_limited:
        yield
        return
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _taken() -> int:
    """Return the bytes that count now; 0 if the system does not tell."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[5]
    except (OSError, IndexError):
        return 0
    return int(pages) * resource.getpagesize()
