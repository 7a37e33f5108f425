"""Prompted language models, without fine-tuning: in this process or behind an endpoint."""
