"""A study's report: everything of it in one HTML file that needs no network and no server."""
