"""Generator for datasets of the tiny world in FETA's release format.

It covers roles, random draws, texts, metadata and files. A dataset's own words and scenes are in
its folder, and ``datasets.tiny_world`` generates the whole world.
"""
