"""The map in SQLite, for its one writer: schema, reading back, writing a batch, checkpoints."""
