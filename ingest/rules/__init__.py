"""PURE. What a page is, and how far it is from each quality entry, given all that is known of it."""
