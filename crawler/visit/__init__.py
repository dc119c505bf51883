"""PURE. One visit: robots.txt, HEAD, GET, and the links of the page. No sockets, no sleeping, no clock."""
