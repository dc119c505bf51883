"""PURE. Policy: the class of a domain, and the URLs that are traps."""
