"""Results shared between labs: shards of one study, and exports to public collections."""
