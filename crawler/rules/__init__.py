"""PURE. Policy: which class a domain is in, and which URLs are a trap."""
