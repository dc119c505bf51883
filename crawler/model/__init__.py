"""PURE. The words that all stages use: records, states, settings, URLs, errors, and the messages of a visit."""
