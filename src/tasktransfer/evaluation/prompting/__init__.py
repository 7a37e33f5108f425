"""Language models that are asked and not trained: in this process, or behind an endpoint."""
