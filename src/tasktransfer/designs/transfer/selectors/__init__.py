"""Which source to train on: selectors, and how they are judged."""
