"""Small maps for the reporter's tests: rows in the ingest's own tables, with depths worked out the plain way."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterable
from pathlib import Path

from crawler.database.format import LINK_FOLLOWED, LINK_NOT_FOLLOWED, LINK_REDIRECT, SCHEMA_VERSION
from crawler.model.settings import Config, QualityEntry
from crawler.model.urls import domain_of, hash64
from crawler.rules.lists import matches
from ingest.writing.schema import READING_INDEXES, READING_VIEWS, TABLES

FOLLOWED, NOT_FOLLOWED, REDIRECT = LINK_FOLLOWED, LINK_NOT_FOLLOWED, LINK_REDIRECT


class MapBuilder:
    """Writes a map row by row; `save` works out depths and domain sums and closes the file."""

    def __init__(self, path: Path, origins: tuple[str, ...] = ("q.test",), run: int = 1) -> None:
        self.path = path
        self.origins = origins
        self.run = run
        self.db = sqlite3.connect(path)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.executescript(TABLES)
        self.db.execute("INSERT INTO meta VALUES ('schema_version', ?)", (str(SCHEMA_VERSION),))
        self.db.executemany("INSERT INTO origins VALUES (?, ?)", enumerate(origins))
        self.domains: dict[str, int] = {}
        self.pages: dict[str, int] = {}
        self.listed: dict[str, str] = {}

    def add_run(self, run: int, status: str = "completed", finished: str | None = "2025-01-15T14:45:23Z") -> None:
        self.db.execute("INSERT INTO runs VALUES (?, '2025-01-15T10:30:00Z', ?, 'hash', ?)", (run, finished, status))

    def domain(self, name: str, klass: str | None = None, **columns: object) -> int:
        if name not in self.domains:
            if klass is None:
                klass = "quality" if any(matches(origin, name) for origin in self.origins) else "discovered"
            cursor = self.db.execute(
                "INSERT INTO domain_states (domain, class, run, first_seen_run) VALUES (?, ?, ?, 1)",
                (name, klass, self.run),
            )
            self.domains[name] = int(cursor.lastrowid or 0)
        for column, value in columns.items():
            self.db.execute(f"UPDATE domain_states SET {column} = ? WHERE domain = ?", (value, name))
        return self.domains[name]

    def page(self, url: str, state: str = "processed", klass: str | None = None, **columns: object) -> int:
        if url in self.pages:
            return self.pages[url]
        domain = domain_of(url)
        visited = state in ("processed", "dead_link", "unreachable", "failed", "content_mismatch")
        values: dict[str, object] = {
            "url": url,
            "domain": domain,
            "state": state,
            "discovered_at": "2025-01-15T10:31:00Z",
            "discovered_run": 1,
            "url_hash": hash64(url),
            "domain_id": self.domain(domain, klass),
            "seen_run": self.run,
            "visited_run": self.run if visited else None,
            "visited_at": "2025-01-15T10:32:00Z" if visited else None,
            "status_code": 200 if state == "processed" else None,
            **columns,
        }
        names = ", ".join(values)
        cursor = self.db.execute(
            f"INSERT INTO pages ({names}) VALUES ({','.join('?' * len(values))})", list(values.values())
        )
        self.pages[url] = number = int(cursor.lastrowid or 0)
        if state in ("blacklisted", "stubbed"):
            self.db.execute(f"INSERT INTO {state}_urls VALUES (?, ?, ?, 0, 1)", (number, url, domain))
            self.listed[url] = state
        if state == "queued":
            self.db.execute(
                "INSERT INTO frontier (page_id, priority, added_at, domain_id) VALUES (?, 0, '', ?)",
                (number, self.domains[domain]),
            )
        return number

    def link(self, source: str, target: str, kind: int = FOLLOWED, last_run: int | None = None) -> None:
        a, b = self.pages[source], self.pages[target]
        self.db.execute(
            "INSERT OR IGNORE INTO links (id, from_page_id, to_page_id, discovered_run, last_run, kind)"
            " VALUES (?, ?, ?, 1, ?, ?)",
            (a << 32 | b, a, b, last_run or self.run, kind),
        )
        if kind == REDIRECT:
            self.db.execute("UPDATE pages SET redirect_to = ? WHERE id = ?", (b, a))
        if target in self.listed:
            self.db.execute(
                f"UPDATE {self.listed[target]}_urls SET reference_count = reference_count + 1 WHERE id = ?", (b,)
            )

    def link_text(self, source: str, target: str, text: str, rel: str | None = None) -> None:
        pair = self.pages[source] << 32 | self.pages[target]
        self.db.execute("INSERT INTO link_texts VALUES (?, ?, ?)", (pair, text, rel))

    def save(self, reverse_index: bool = False, max_depth: int = 3, unsummed: Iterable[str] = ()) -> Path:
        """`unsummed`: pages that were visited a moment ago."""
        if not self.db.execute("SELECT count(*) FROM runs").fetchone()[0]:
            self.add_run(self.run)
        for number, origin in enumerate(self.origins):
            for page, depth in plain_depths(self.db, origin, max_depth, self.run).items():
                self.db.execute(
                    "INSERT INTO page_depths VALUES (?, ?, ?, ?)", (page << 16 | number, page, origin, depth)
                )
        self.db.execute(
            "UPDATE pages SET depth = (SELECT min(depth) FROM page_depths d WHERE d.page_id = pages.id)"
            " WHERE depth IS NULL"
        )
        self.db.executemany(
            "INSERT INTO unsummed_visits SELECT domain_id << 32 | id, 0 FROM pages WHERE id = ?",
            [(self.pages[url],) for url in unsummed],
        )
        self.db.execute(
            "INSERT INTO domain_links SELECT f.domain_id << 32 | t.domain_id, f.domain_id, t.domain_id, count(*)"
            " FROM links l JOIN pages f ON f.id = l.from_page_id JOIN pages t ON t.id = l.to_page_id"
            " WHERE f.domain_id << 32 | f.id NOT IN (SELECT id FROM unsummed_visits) GROUP BY 1"
        )
        if reverse_index:
            for sql in (*READING_INDEXES.values(), *READING_VIEWS.values()):
                self.db.execute(sql)
        self.db.commit()
        self.db.close()
        return self.path


def plain_depths(db: sqlite3.Connection, origin: str, max_depth: int, run: int) -> dict[int, int]:
    """Breadth first over the finished graph: 0 inside the origin, + 1 a followed link, + 0 a redirect."""
    edges: dict[int, list[tuple[int, int]]] = {}
    for source, target, kind in db.execute(
        "SELECT from_page_id, to_page_id, kind FROM links WHERE last_run = ?", (run,)
    ):
        if kind != NOT_FOLLOWED:
            edges.setdefault(source, []).append((target, 0 if kind == REDIRECT else 1))
    depths: dict[int, int] = {}
    waiting: deque[tuple[int, int]] = deque(
        (page, 0)
        for page, domain, state in db.execute("SELECT id, domain, state FROM pages WHERE seen_run = ?", (run,))
        if matches(origin, domain) and state not in ("blacklisted", "stubbed")
    )
    while waiting:
        page, depth = waiting.popleft()
        if depths.get(page, depth + 1) <= depth:
            continue
        depths[page] = depth
        if depth <= max_depth:
            for target, step in edges.get(page, ()):
                (waiting.append if step else waiting.appendleft)((target, depth + step))
    return depths


def config_for(origins: tuple[str, ...] = ("q.test",), **lists: tuple[str, ...]) -> Config:
    quality = tuple(QualityEntry(origin, (f"https://{origin.removeprefix('*.')}/",)) for origin in origins)
    return Config(quality=quality, **lists)  # type: ignore[arg-type]


def rich_map(path: Path) -> Path:
    """A map with something for every section of the summary."""
    b = MapBuilder(path, ("q.test", "*.wild.test"))
    home, about, wild = "https://q.test/", "https://q.test/about", "https://blog.wild.test/"
    for url in (home, about, wild):
        b.page(url, title=f"Title of {url}")
    b.page("https://wild.test/full", "processed", links_cut=1234)
    b.page("https://wild.test/half", "processed", truncated=1)
    b.page("https://q.test/gone", "dead_link", status_code=404, error_message="http-404: Not Found")
    b.page("https://q.test/gone2", "dead_link", status_code=410, error_message="http-410: Gone")
    b.page("https://q.test/old", "processed", status_code=301)
    b.page("https://q.test/older", "processed", status_code=308)
    b.page("https://q.test/temp", "processed", status_code=302)
    b.page("https://q.test/new")
    b.link("https://q.test/older", "https://q.test/old", REDIRECT)
    b.link("https://q.test/old", "https://q.test/new", REDIRECT)
    b.link("https://q.test/temp", "https://q.test/new", REDIRECT)
    for url in ("gone", "gone2", "old", "older", "temp", "about", "new"):
        b.link(home, f"https://q.test/{url}")
        b.link(about, f"https://q.test/{url}") if url != "about" else None
    b.link(wild, "https://q.test/gone")
    b.link(home, wild)
    b.link(wild, home)
    b.link(wild, "https://wild.test/full")
    friend, deep = "https://friend.test/", "https://friend.test/deep"
    b.page(friend, title="A friend")
    b.page(deep)
    b.link(home, friend)
    b.link(wild, friend)
    b.link(friend, home)
    b.link(friend, deep)
    far = [f"https://far{number}.test/" for number in range(30)]
    for number, url in enumerate(far):
        b.page(url, "processed" if number % 2 else "depth_exceeded")
        b.link(deep, url)
    b.link(far[1], friend)
    b.page("https://ads.test/x", "blacklisted", "blacklisted")
    b.page("https://ads.test/y", "blacklisted", "blacklisted")
    for number in range(25):
        b.page(f"https://hub.test/{number:02}", "stubbed", "stubbed")
        b.link(about if number % 2 else home, f"https://hub.test/{number:02}")
    b.link(home, "https://ads.test/x")
    b.link(about, "https://ads.test/x")
    b.link(home, "https://ads.test/y")
    errors = [
        ("unreachable", "connection-refused: nobody listens", None),
        ("unreachable", "dns: no such host", None),
        ("unreachable", "tls: certificate expired", None),
        ("failed", "timeout: no answer in 30 s", None),
        ("failed", "http-503: Service Unavailable", 503),
        ("failed", "http-403: Forbidden", 403),
        ("failed", "redirect-loop: leads back", 301),
        ("failed", "trap-path-repeats: 'a' is in the path 5 times", None),
        ("failed", "something-new: nobody foresaw this", None),
        ("content_mismatch", "content-mismatch: application/pdf", 200),
    ]
    for number, (state, error, status) in enumerate(errors):
        url = f"https://err{number}.test/"
        b.page(url, state, error_message=error, status_code=status)
        b.link(friend, url)
    b.page("https://denied.test/", "failed", error_message="robots-denied: Disallow: /")
    b.link(home, "https://denied.test/")
    b.domain("denied.test", robots_outcome="parsed", robots_txt="User-agent: *\nDisallow: /\n")
    for name, reason, state, at in (
        ("slow.test", "rate-limited", "rate_limited", 45),
        ("busy.test", "request-limit", "request_limit_hit", 500),
    ):
        for number in range(3):
            url = f"https://{name}/{number}"
            slug = f"{reason}: …"
            b.page(url, state, error_message=slug)
            b.link(home, url)
        b.domain(name, closed_reason=reason, closed_at_request=at, rate_limited=int(reason == "rate-limited"))
    b.domain("slow.test", request_count=45)
    b.page("https://sleepy.test/", "failed", error_message="robots-unreachable: 503")
    b.link(home, "https://sleepy.test/")
    b.domain("sleepy.test", robots_outcome="unreachable")
    b.page("https://nofollow.test/", "discovered")
    b.link(home, "https://nofollow.test/", NOT_FOLLOWED)
    b.page("https://later.test/", "queued")
    b.link(home, "https://later.test/")
    b.db.execute(
        "INSERT INTO closed_families (id, run, domain, family, error, spare)"
        " VALUES (1, 1, 'friend.test', 'friend.test/day?*', 'trap-query-variants: 200 visits', '[]')"
    )
    b.db.execute("INSERT INTO quarantine VALUES ('fetcher-01', 1, 17, 'checksum does not match', 80)")
    return b.save()
