"""The tables of the paper beside the published ones."""
