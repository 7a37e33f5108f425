"""What generates a dataset of the tiny world in FETA's release format.

Casting, random draws, texts, metadata and files; a dataset's own words and scenes are in its
folder, and ``datasets.tiny_world`` makes the whole world.
"""
