"""Writing rows to topics, at least once and exactly once."""
