"""PURE. Politeness: when a request to a domain may start, and how many may be on the wire.

    gate_record  what is remembered of a domain's requests, and how that changes
    breaker      the circuit breaker: after failures in a row a domain is left alone for a while
    decisions    may a request start now? is a closure in force? a process's share of the slots

Nothing here locks, writes or reads a clock. A gate (`crawler.workspace.door.Gate`) reads the record, lets `decisions`
decide, and writes the record that results.
"""
