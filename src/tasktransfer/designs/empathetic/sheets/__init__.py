"""Rating sheets for people: written as HTML pages, and read from the answers of raters."""
