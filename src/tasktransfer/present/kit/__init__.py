"""What figures are made of: palette, marks and sizes in one place, and the kinds of panel."""
