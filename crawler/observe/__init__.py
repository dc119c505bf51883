"""Observation of a crawl from outside: no stage is asked or disturbed.

    processes      a snapshot of a workspace: the stages' processes, the flags, the run
    backlog        the work that waits between the stages
    status         `sumi-ripple status`
    live_text      the words of the live view
    live_view      the live view on a terminal, and plain lines in a pipe
    logs           log lines
    audit          `sumi-ripple audit`: were all requests polite?
    ledger_order   the records of all result logs in the order of time, by the order of `boots`
    ledger_checks  every request against the promises
    audit_report   the findings and their text

Everything is read from the workspace and the map.
"""
