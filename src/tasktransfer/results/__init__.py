"""Results of nodes: the folders, states and records, and checks that they are complete."""
