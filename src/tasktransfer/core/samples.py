"""Fractions of the training dialogues in a learning curve, and the recipe of samples of them."""

from __future__ import annotations

FRACTIONS = (0.25, 0.5, 0.75, 1.0)
"""Fractions of the training dialogues in a learning curve."""

NEXT = 2.0
"""Fraction of the training dialogues if as many again were labelled, for the forecast."""

SAMPLED = "sampled_dialogues"
"""Recipe of derived data with a sample of the training dialogues (``data.samples``)."""

FRACTION = "fraction"
"""Setting of the recipe: the fraction of the training dialogues that the sample has."""
