"""The figures of a crawl for Prometheus: one collector, for `sumi-ripple metrics` and the web face's `/metrics`."""
