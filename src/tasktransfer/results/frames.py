"""Names of the frames (tables) that every study has.

This module does not import pandas, because the Snakefile reads the names at every start.
"""

COMMON = ("runs", "scores", "resources", "missing", "problems")
"""Tables that ``collect`` writes for every design, by name (``results.common_frames``)."""

COMMON_FILES = tuple(f"tables/{name}.parquet" for name in COMMON)
