"""`sumi-ripple audit`: was the crawl polite? The ledgers in the result spools are read again and checked.

Every request is in the ledger of a result, with the monotonic clock of the machine. The ledgers alone show whether
the promises were kept:

- **spacing**: from the end of a request to a domain to the start of the next one at least `minimum-time-on-page`
  passes, or the `Crawl-delay` of the requested host, if that was known by then;
- **budget**: no domain had more than `max-domain-requests` requests in a run, lost ones included;
- **numbers**: the gate of a domain numbers its requests; no number is given twice in a run, and what is missing was
  reported as lost;
- **robots**: no page was requested unless its host's robots.txt had been read in the 24 hours before (where that
  record may be one of those that `prune results` or `[spool] results` dropped, it is not known, and counted so);
- **lists**: no request went to a domain on the blacklist or the stub list.

Each request is judged by the limits that its run had when it was sent (`run_limits`): they are recorded with the run,
and a limit that is changed later changes no verdict.

The spools are read once, merged by time (`ledger_order`, `boots`), and checked with a few requests of each domain in
memory (`ledger_checks`). A request can be late in the spools only where a robots.txt redirected to a domain that
another fetcher held; such domains are read a second time, with all their requests in memory.
"""

from __future__ import annotations

from crawler.database.ingest_progress import results_kept_from
from crawler.database.map_errors import MapError
from crawler.database.run_log import recorded_runs
from crawler.model.settings import Config
from crawler.observe.audit_report import AuditReport
from crawler.observe.boots import read_boots
from crawler.observe.ledger_checks import LedgerChecks
from crawler.observe.ledger_order import read_in_order
from crawler.observe.run_limits import milliseconds, read_run_limits
from crawler.workspace.log import Damage
from crawler.workspace.opening import open_workspace


def audit(config: Config, *, is_uncut: bool = False, command: str = "sumi-ripple audit --all") -> AuditReport:
    """Check every request in the result spools of the config's workspace.

    `is_uncut`: every violation is kept; `command` is the one that lists them all.
    """
    results = open_workspace(config).results
    report = AuditReport(writers=len(results.writers()), command=command)
    if is_uncut:
        report.kept = None
    limits = read_run_limits(results, config)

    def count_damage(damage: Damage) -> None:
        report.damaged += 1

    boots = read_boots(results)
    dropped_until_ms = _dropped_until(config, report)
    checks = LedgerChecks(limits, report, boots, dropped_until_ms=dropped_until_ms)
    for record in read_in_order(results, boots, count_damage):
        checks.add(record)
    late = checks.finish()
    if late:
        checks = LedgerChecks(limits, report, boots, only=late, dropped_until_ms=dropped_until_ms)
        for record in read_in_order(results, boots, None):
            checks.add(record)
        checks.finish()
    report.limits = tuple(limits.lines(report.runs, report.dropped_before))
    report.violations.sort(key=lambda violation: (violation.at_ms, violation.domain))
    return report


def _dropped_until(config: Config, report: AuditReport) -> int | None:
    """The start of the oldest run whose results are all kept, in milliseconds: all that was dropped is from before it.
    None: nothing was dropped, as far as the map knows.
    """
    kept_from = results_kept_from(config.map_place)
    if kept_from is None:
        return None
    try:
        started_at = recorded_runs(config.map_place).find(kept_from).started_at
    except MapError:
        return None
    report.dropped_before = kept_from
    return milliseconds(started_at)
