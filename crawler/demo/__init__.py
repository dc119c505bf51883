"""The built-in demo terrain: a small web of invented sites, served over HTTPS on this machine alone."""
