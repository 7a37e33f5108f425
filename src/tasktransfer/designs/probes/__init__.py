"""Probes of encoders that are trained on next-utterance prediction.

The paper is Parthasarathi, Pineau and Chandar, SIGDIAL 2021.
"""
