"""PURE. One visit: robots.txt, HEAD, GET, and what the page says. No sockets, no sleeping, no clock."""
