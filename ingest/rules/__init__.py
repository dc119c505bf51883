"""PURE. The state of a page and its depths, from everything that is known of it."""
