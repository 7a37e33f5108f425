"""A memory limit for libraries while they decompress untrusted files.

A few kilobytes of Parquet or Arrow can become gigabytes, and the libraries have no limit.
Standard library only.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def limit_memory(more: int) -> Iterator[None]:
    """Limit this process to ``more`` additional bytes of data, within the block.

    A larger allocation raises MemoryError. The limit applies to the whole process (RLIMIT_DATA), so
    no other work should run in the block. Only Linux enforces it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    taken = _count_used_bytes()
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


def _count_used_bytes() -> int:
    """Count the bytes that already count towards the limit, or return 0 if unknown."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[5]
    except (OSError, IndexError):
        return 0
    return int(pages) * resource.getpagesize()
