"""What encoders know: probes of encoders that are trained on the next utterance (Parthasarathi,
Pineau and Chandar, SIGDIAL 2021)."""
