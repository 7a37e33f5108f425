"""Few-sample task transfer: the FETA benchmark (Albalak et al., EMNLP 2022)."""
