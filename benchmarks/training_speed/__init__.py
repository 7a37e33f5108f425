"""Training and evaluation measured side by side: this trainer, the paper's toolkit, HF Trainer.

``compare`` is where to begin. Every contestant runs in a fresh process (``worker``), on the same
instances with the same weights; torch is imported there only.
"""
