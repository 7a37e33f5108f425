"""The report: one HTML file with a study's facts, tables, statistics, figures and an interactive
heatmap, which opens without a network or a server.

``page.write_report`` makes it. ``page.html.j2`` is its text, ``page.css`` its look and
``heatmap*.js`` what makes the heatmap answer; ``grid`` computes the numbers that it shows.
"""
