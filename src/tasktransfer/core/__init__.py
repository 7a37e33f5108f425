"""The nodes of a study and its plan. Pure, standard library only."""
