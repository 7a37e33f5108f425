"""Tables of any design: self-describing Parquet files, and printed tables.

``store`` writes and reads Parquet. ``printed`` writes CSV, Markdown and LaTeX, ``text`` formats for
terminals, and ``html`` for pages. ``numbers`` formats numbers in the same way for all of them.
"""

COMMON = ("runs", "scores", "resources", "missing", "problems")
"""Tables that ``collect`` writes for every design, by name (``tables.collected``)."""

COMMON_FILES = tuple(f"tables/{name}.parquet" for name in COMMON)
