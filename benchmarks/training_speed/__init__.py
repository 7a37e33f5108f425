"""Comparison of training and evaluation speed: this trainer, the paper's toolkit, HF Trainer.

Start reading with ``compare``. Every contestant runs in a new process (``worker``), on the same
instances with the same weights; only that process imports torch.
"""
