"""The release format that the FETA datasets share, and the generator of its tiny world."""
