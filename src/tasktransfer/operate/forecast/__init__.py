"""Forecast of a study's cost before it runs: instances, tokens, hours, memory, disk.

Standard library only and fast, because the Snakefile calls it for thousands of jobs.
"""
