"""Results that several labs share: shards of one study, and records for everybody."""
