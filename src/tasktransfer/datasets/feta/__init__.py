"""Release format of the FETA datasets, and the generator of synthetic releases in this format."""
