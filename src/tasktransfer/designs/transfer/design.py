"""The transfer study as a design."""

from __future__ import annotations

from tasktransfer.designs.design import Design
from tasktransfer.designs.transfer.plan import plan

TRANSFER = Design(
    name="transfer",
    plan=plan,
    # Records of a free study cannot be submitted to the challenge.
    facts=lambda config: {"rules": config.rules},
)
