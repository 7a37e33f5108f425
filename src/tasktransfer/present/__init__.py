"""Presentation of a study of any design: tables, figures and one page.

A design declares them (``declared``). ``tables`` writes declared tables, ``figures`` draws figures
from the parts in ``kit``, and ``page`` writes the report. ``published`` joins a paper's values with
the study's, and ``marks`` has the caveats that apply to every number.
"""
