"""Observation of a crawl from outside.

processes    a snapshot of a workspace: the stages' processes, the flags, the run, the backlog
status       `sumi-ripple status`
live_text    PURE: the words of the live view
live_view    the live view on a terminal, and plain lines in a pipe
logs         log lines
audit        `sumi-ripple audit`: were all requests polite? (audit_report, boots, ledger_order, ledger_checks)
"""
