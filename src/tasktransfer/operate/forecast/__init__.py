"""What a study will take, before it is run: instances, tokens, hours, memory, disk.

Standard library only and fast: the Snakefile asks it for thousands of jobs.
"""
