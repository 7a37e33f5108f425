"""Declared datasets: a user's files, or a dataset of the hub, that a config describes without code.

``section`` is the config section and ``source`` reads its rows. ``survey`` collects the facts that
a plan needs before it is made, and ``reader`` builds a ``Dataset``.
"""
