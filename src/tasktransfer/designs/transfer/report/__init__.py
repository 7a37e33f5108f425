"""Parts of the HTML report for transfer studies.

The report is one file with a study's facts, tables, statistics, figures and an interactive heatmap.
It opens without a network or a server. ``present.page.page`` writes it. ``answer``,
``advice`` and ``learned`` write its sentences, and ``blocks`` and ``targets`` its other parts.
``heatmap.html.j2``, ``heatmap.css`` and ``heatmap*.js`` make the interactive heatmap; ``grid``
computes its data.
"""
