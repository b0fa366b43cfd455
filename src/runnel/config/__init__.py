"""What may be configured, where a value may come from, and the typed values the code reads."""
