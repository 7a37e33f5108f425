"""Release format of the FETA datasets, and the generator of the tiny world in this format."""
