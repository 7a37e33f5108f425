"""Probes of encoders that are trained on next-utterance prediction (Parthasarathi, Pineau and
Chandar, SIGDIAL 2021)."""
