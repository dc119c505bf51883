"""Requests on the wire: addresses that were checked, TLS, HTTP/1.1, content codings; one thread for many requests."""
