"""Tables of any design: Parquet files that describe themselves, and printing for people.

Write and read with ``store``, print with ``printed`` (CSV, Markdown, LaTeX), ``text`` (terminal)
and ``html`` (a template's tables); ``numbers`` spells every number the same way in all of them.
"""

COMMON = ("runs", "scores", "resources", "missing", "problems")
"""Tables that ``collect`` writes for every design, by name (``tables.collected``)."""

COMMON_FILES = tuple(f"tables/{name}.parquet" for name in COMMON)
