"""Datasets of one's own: files that a config declares, or a dataset of the hub, without code.

``section`` is what a config says, ``source`` where its rows are, ``survey`` what has to be known of
them before a plan is made, ``reader`` makes a ``Dataset`` of it all.
"""
