"""The EmpatheticDialogues study (Rashkin et al.): docs/empathetic.md."""
