"""Run records to data frames."""
