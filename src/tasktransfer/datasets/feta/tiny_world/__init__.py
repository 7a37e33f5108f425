"""Generator of synthetic datasets, the tiny world, in FETA's release format.

The modules assign roles, sample at random, and write texts, metadata and files. The words and
scenes of a dataset are in its folder, and ``datasets.tiny_world`` generates all datasets.
"""
