"""A study's report: one HTML file that needs no network and no server."""
