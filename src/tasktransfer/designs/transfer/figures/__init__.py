"""The paper's figures, and additional ones."""
