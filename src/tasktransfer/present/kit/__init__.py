"""Parts of figures: palette, marks and sizes, and kinds of panels."""
