"""Few-sample task transfer in open-domain dialogue (the FETA benchmark) as a workflow."""

__version__ = "0.2.0"
