"""Tables of results: Parquet with metadata, and as people read them."""
