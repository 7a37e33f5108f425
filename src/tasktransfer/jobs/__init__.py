"""The jobs of the workflow: their inputs, and jobs that derive data, fit and evaluate."""
