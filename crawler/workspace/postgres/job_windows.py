"""Released jobs as rows: one for each window, with the lines that it would have in a file, and the domains' bookmarks.

Nothing here is made durable but bookmarks: jobs that are lost are released again from the frontier.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from crawler.engine.packed_arrays import byteas, texts
from crawler.model.records import Job, dump
from crawler.workspace.bookmarks import Bookmark, BookmarkMove, dump_bookmark, parse_bookmark
from crawler.workspace.files.spool import is_whole, seal_line
from crawler.workspace.log import BEGINNING, Cursor, Damage, Line
from crawler.workspace.postgres.engine_session import Connection, EngineSession
from crawler.workspace.postgres.record_logs import line_damage
from crawler.workspace.reading import parse_lines


@dataclass(frozen=True, slots=True)
class JobWindowRow:
    """One released window, as found after a restart. See `crawler.workspace.door.JobWindow`."""

    writer: JobWindows
    domain: str
    number: int
    jobs: Sequence[Job]

    def remove(self) -> None:
        self.writer.remove(self.domain, self.number)


class JobWindows:
    """See `crawler.workspace.door.JobWriter`. Windows are numbered by a sequence, which never goes back."""

    def __init__(self, session: EngineSession) -> None:
        self._session = session

    def write(self, domain: str, jobs: Sequence[Job]) -> int:
        body = b"".join([seal_line(dump(job)) for job in jobs])
        rows = self._session.execute(
            "WITH known AS (INSERT INTO job_domains (domain) VALUES (%(domain)s) ON CONFLICT DO NOTHING)"
            " INSERT INTO windows SELECT %(domain)s, nextval('window_numbers'), %(body)s RETURNING number",
            {"domain": domain, "body": body},
        )
        return int(rows[0][0])

    def windows(self) -> Iterator[JobWindowRow]:
        found = self._session.execute("SELECT domain, number, body FROM windows ORDER BY domain, number")
        for domain, number, body in found:
            jobs = [job for job, _ in parse_lines(_lines(number, body), Job)]
            yield JobWindowRow(self, domain, number, jobs)

    def remove(self, domain: str, number: int) -> None:
        self._session.execute("DELETE FROM windows WHERE domain = %s AND number = %s", (domain, number))

    def is_worked_off(self, domain: str) -> bool:
        rows = self._session.execute(
            "SELECT d.bookmark, w.number, length(w.body) FROM job_domains d LEFT JOIN LATERAL"
            " (SELECT number, body FROM windows WHERE domain = d.domain ORDER BY number DESC LIMIT 1) w ON true"
            " WHERE d.domain = %s",
            (domain,),
        )
        if not rows or rows[0][0] is None:
            return False
        content, number, size = rows[0]
        end = BEGINNING if number is None else Cursor(number, size)
        return (parse_bookmark(content) or Bookmark()).jobs >= end

    def remove_all(self) -> None:
        self._session.execute("DELETE FROM windows")
        self.clean()

    def clean(self) -> None:
        self._session.execute(
            "DELETE FROM job_domains d WHERE NOT EXISTS (SELECT FROM windows w WHERE w.domain = d.domain)"
            " AND NOT EXISTS (SELECT FROM gates g WHERE g.domain = d.domain AND g.holder IS NOT NULL)"
        )


class JobReader:
    """See `crawler.workspace.log.LogReader`: the jobs of one domain, window after window."""

    def __init__(self, session: EngineSession, domain: str, start: Cursor) -> None:
        self._session = session
        self._domain = domain
        self.cursor = start

    def read(self, limit: int = 1000) -> list[Line]:
        rows = self._session.execute(
            "SELECT number, body FROM windows WHERE domain = %s AND number >= %s ORDER BY number LIMIT 100",
            (self._domain, self.cursor.segment),
        )
        lines: list[Line] = []
        for number, body in rows:
            for line in _lines(number, body):
                if line.end <= self.cursor:
                    continue
                if len(lines) >= limit:
                    return lines
                lines.append(line)
                self.cursor = line.end
        return lines

    def __iter__(self) -> Iterator[Line]:
        while lines := self.read():
            yield from lines

    def sync(self) -> None:
        """Jobs are not made durable."""

    def unread_bytes(self) -> int:
        rows = self._session.execute(
            "SELECT coalesce(sum(length(body) - CASE WHEN number = %s THEN %s ELSE 0 END), 0)::bigint FROM windows"
            " WHERE domain = %s AND number >= %s",
            (self.cursor.segment, self.cursor.offset, self._domain, self.cursor.segment),
        )
        return max(0, int(rows[0][0]))

    def damage(self, line: Line, reason: str) -> Damage:
        return line_damage(f"jobs/{self._domain}", line, reason)

    def close(self) -> None:
        pass


def _lines(number: int, body: bytes) -> Iterator[Line]:
    """The lines of a window that are whole; a job that is not is released again."""
    at = 0
    for text in body.split(b"\n"):
        at += len(text) + 1
        if is_whole(text):
            yield Line(text, Cursor(number, at))


def read_bookmarks(session: EngineSession, domains: Collection[str]) -> dict[str, Bookmark]:
    rows = session.execute(
        "SELECT domain, bookmark FROM job_domains WHERE domain = ANY(%s) AND bookmark IS NOT NULL",
        (texts(list(domains)),),
    )
    found = {domain: parse_bookmark(content) or Bookmark() for domain, content in rows}
    return {domain: found.get(domain, Bookmark()) for domain in domains}


def move_bookmarks(connection: Connection, moves: Collection[BookmarkMove]) -> None:
    """Replace them, of domains that have jobs."""
    connection.execute(
        "UPDATE job_domains j SET bookmark = m.bookmark FROM unnest(%s::text[], %s::bytea[]) AS m(domain, bookmark)"
        " WHERE j.domain = m.domain",
        (texts([each.domain for each in moves]), byteas([dump_bookmark(each.bookmark) for each in moves])),
    )


def waiting_bytes(session: EngineSession) -> Mapping[str, int]:
    """Bytes of jobs after the bookmark, by domain."""
    waiting: dict[str, int] = {}
    rows = session.execute(
        "SELECT w.domain, w.number, length(w.body), d.bookmark FROM windows w JOIN job_domains d USING (domain)"
    )
    for domain, number, size, content in rows:
        jobs = ((parse_bookmark(content) if content else None) or Bookmark()).jobs
        left = size if number > jobs.segment else size - jobs.offset if number == jobs.segment else 0
        if left > 0:
            waiting[domain] = waiting.get(domain, 0) + left
    return waiting
