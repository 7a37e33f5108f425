"""The jobs of the workflow: what each reads, and those that derive data, fit and evaluate."""
