"""The panel study: experts that rate responses (PoE, Zhang et al. 2022): docs/panel.md."""
