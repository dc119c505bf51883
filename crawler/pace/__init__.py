"""Politeness: when a request to a domain may start, and how many may be on the wire."""
