"""The map for readers: the one place that opens it read-only, and the constants of its format."""
