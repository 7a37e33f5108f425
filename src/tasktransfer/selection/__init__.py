"""Source selection: which source task helps a target.

``selector`` is the protocol and ``methods`` the selectors. ``nodes`` plans their jobs, ``values``
and ``matrix`` read results, and ``judging`` compares rankings with finished transfers.
``columns`` and ``declared`` have the tables and the figure. ``recommend`` ranks the sources of one
target by ``evidence`` from others.

Parts that other layers need stay there: ``evaluation.measurements`` imports torch, and
``jobs.selector_job`` reads artefacts of other nodes. ``designs.transfer`` reads its own config in
``selectors``, ``selection`` and ``recommend``.
"""
