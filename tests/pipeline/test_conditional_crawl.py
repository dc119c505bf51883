"""Issue 19: crawl, change pages, crawl again, against a server with ETags and dates and some odd habits."""

from __future__ import annotations

import hashlib
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme

from crawler.config.load import load
from crawler.database.digest import digest
from crawler.demo.server import Served
from crawler.keep.read_again import PagesReadAgain
from crawler.keep.stored_pages import verify
from crawler.model.records import PageResult
from crawler.model.wire_counts import VisitCounts
from crawler.observe.audit import audit
from crawler.observe.status import Status
from crawler.store.file_store import open_store
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.opening import open_workspace
from crawler.workspace.reading import read_records
from ingest.replay import replay
from reporter.explain.explanation import explain
from tests.pipeline.crawling import rows
from tests.pipeline.walks import config_for, crawl_quickly

DATE = "Mon, 01 Jan 2024 00:00:00 GMT"
PLAIN = tuple(f"/plain/{number}" for number in range(8))
LONG = (PLAIN[6], PLAIN[7])  # their readings are noted: the others are too thin
ODD = ("/suffix", "/other-etag", "/always-304", "/no-validators", "/noarchive", "/damaged", "/missing", "/nofollow")
ODD += ("/false-etag", "/slash")


class Site(ThreadingHTTPServer):
    """One site. `seen` has (method, path, conditions, status) of each request."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        authority = trustme.CA()
        authority.cert_pem.write_to_path(folder / "ca.pem")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("a.test").configure_cert(context)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        links = "".join(f'<a href="{path}">to it</a>' for path in (*PLAIN, *ODD))
        self.pages = {path: f"<title>{path}</title><p>text of {path}</p>" for path in (*PLAIN, *ODD)}
        self.pages["/"] = f"<title>front</title>{links}"
        for path in LONG:
            self.pages[path] += "<p>" + "a word " * 200
        self.pages["/nofollow"] += '<a href="/never">never</a>'
        self.seen: list[tuple[str, str, str, int]] = []
        self.is_second = False
        self.not_to_be_kept = {"/noarchive"}

    def take_seen(self) -> list[tuple[str, str, str, int]]:
        seen, self.seen = self.seen, []
        return [each for each in seen if each[1] != "/robots.txt"]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Site

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        if self.path == "/slash":  # the page is at another address of the same key
            self._redirect("/slash/")
            return
        page = self.server.pages.get(self.path.removesuffix("/") or "/", "")
        etag = '"' + hashlib.sha256(page.encode()).hexdigest()[:12] + '"'
        match, since = self.headers.get("If-None-Match"), self.headers.get("If-Modified-Since")
        headers = {"ETag": etag, "Last-Modified": DATE, "Content-Type": "text/html; charset=utf-8"}
        status = 200 if page else 404
        if self.path == "/suffix":  # what it sends is not what it compares with
            headers["ETag"] = etag[:-1] + '-gzip"'
            status = 304 if match is None and since == DATE else status
        elif self.path == "/other-etag":
            status = 304 if match else status
            headers["ETag"] = '"another"' if match else etag
        elif self.path == "/always-304":
            status = 304 if self.server.is_second else status
            headers["ETag"] = '"another"' if self.server.is_second else etag
        elif self.path == "/false-etag":  # and there is no date
            del headers["Last-Modified"]
        elif self.path == "/no-validators":
            del headers["ETag"], headers["Last-Modified"]
        elif match == etag:
            status = 304
            del headers["Content-Type"]
        if self.path in self.server.not_to_be_kept:
            headers["X-Robots-Tag"] = "noarchive"
        if self.path == "/nofollow" and status == 200:
            headers["X-Robots-Tag"] = "nofollow"
        conditions = "+".join(word for word, value in (("etag", match), ("date", since)) if value)
        self.server.seen.append((self.command, self.path, conditions, status))
        body = page.encode() if status == 200 else b""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def _redirect(self, location: str) -> None:
        conditions = "etag" if self.headers.get("If-None-Match") else ""
        self.server.seen.append((self.command, self.path, conditions, 301))
        self.send_response(301)
        self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    server = Site(tmp_path)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def results_of(folder: Path, run_number: int) -> dict[str, PageResult]:
    found = {}
    logs = FileWorkspace(folder / "workspace").results
    for writer in logs.writers():
        for result, _ in read_records(logs.reader(writer), PageResult):
            if result.run == run_number:
                found[result.key.removeprefix("https://a.test")] = result
    return found


def test_three_changed_pages_are_sent_and_the_others_confirmed_whatever_a_server_makes_of_it(
    site: Site, tmp_path: Path
) -> None:
    served = Served(0, site.server_port, 1, tmp_path / "ca.pem", None)
    kept, plain = tmp_path / "kept", tmp_path / "plain"
    places = '[output]\ndatabase-path = "map.db"\n'
    paths = {
        folder: config_for(folder, served, ("a.test",), more=places + f"[store]\nhtml = {html}\n")
        for folder, html in ((kept, "true"), (plain, "false"))
    }
    for path in paths.values():
        path.write_text(path.read_text().replace('head-requests = "never"', 'head-requests = "always"'))
    crawl_quickly(paths[kept])
    assert all(not conditions for _, _, conditions, _ in site.take_seen())

    config = load(paths[kept])
    store, first = open_store(config), results_of(kept, 1)
    damaged, missing = (store.path_of(first[path].content_hash or "") for path in ("/damaged", "/missing"))
    flipped = bytearray(damaged.read_bytes())
    flipped[len(flipped) // 2] ^= 1
    damaged.write_bytes(flipped)
    missing.unlink()
    of_page, of_note = (store.path_of(first[path].content_hash or "") for path in LONG)
    whole_page = of_page.read_bytes()
    of_page.write_bytes(whole_page[:-20] + bytes([whole_page[-20] ^ 1]) + whole_page[-19:])
    noted = store.note_of(first[LONG[1]].content_hash or "")
    of_note.write_bytes(of_note.read_bytes()[:60] + b"?" + of_note.read_bytes()[61:])
    assert noted and not store.note_of(first[LONG[1]].content_hash or "")
    changed = PLAIN[:3]
    for path in changed:
        site.pages[path] += "<p>changed</p>"
    site.is_second = True
    crawl_quickly(paths[kept])
    seen = site.take_seen()
    asked: dict[str, list[tuple[str, str, int]]] = {}
    for method, path, conditions, status in seen:
        asked.setdefault(path, []).append((method, conditions, status))
    whole = [("HEAD", "", 200), ("GET", "", 200)]
    for path in ("/", *PLAIN, "/nofollow"):
        assert asked[path] == [("GET", "etag+date", 200 if path in changed else 304)], path
    assert asked["/no-validators"] == asked["/noarchive"] == asked["/missing"] == whole
    assert asked["/damaged"] == [("GET", "etag+date", 304), ("GET", "", 200)]
    assert asked["/suffix"] == [("GET", "etag+date", 200)]
    assert asked["/false-etag"] == [("GET", "etag", 200)]
    assert asked["/slash"] == [("GET", "", 301)] and asked["/slash/"] == [("GET", "etag+date", 304)]
    assert asked["/other-etag"] == [("GET", "etag+date", 304), ("GET", "", 200)]
    assert asked["/always-304"] == [("GET", "etag+date", 304), ("GET", "", 304)]
    assert "/never" not in asked, "the 304 does not repeat that its links are not to be followed"
    second = results_of(kept, 2)
    assert (second["/always-304"].state, second["/always-304"].error) == ("failed", "http-304")
    for path in (*PLAIN[3:], "/nofollow"):
        assert second[path].hrefs == first[path].hrefs and second[path].stored, "a result needs no earlier line"
        assert (second[path].title, second[path].content_hash) == (first[path].title, first[path].content_hash)
    kept_not = second["/noarchive"]
    assert kept_not.noarchive and not kept_not.stored and not store.has(kept_not.content_hash or ""), "hashed, not kept"
    (found,) = verify(config).damaged
    assert found.digest == first[LONG[0]].content_hash, "a 304 takes what is noted, and does not look at the page"
    of_page.write_bytes(whole_page)
    assert store.note_of(first[LONG[1]].content_hash or "") == noted, "the page was read, and noted anew"
    assert verify(config).is_sound, "the damaged page was put anew, and the missing one"

    crawl_quickly(paths[kept])
    third = [(path, conditions, status) for _, path, conditions, status in site.take_seen()]
    for path in ("/suffix", "/other-etag"):
        statuses = [each[1:] for each in third if each[0] == path]
        assert statuses[0] == ("date", 304 if path == "/suffix" else 200), "its ETag is of no use"
    assert [each[1:] for each in third if each[0] == "/false-etag"] == [("", 200), ("", 200)], "HEAD and GET"
    crawl_quickly(paths[plain])
    site.take_seen()
    assert digest(kept / "map.db") == digest(plain / "map.db"), "the same map with and without the store"
    for number, renew in enumerate((None, PagesReadAgain(config, store))):
        replay(config, kept / f"again{number}.db", renew=renew)
        assert digest(kept / f"again{number}.db") == digest(kept / "map.db")
    assert audit(config).is_clean
    assert rows(kept, "SELECT count(*) FROM page_answers WHERE is_etag_vain", "map.db") == [(3,)]


def test_a_page_that_was_not_due_is_confirmed_by_a_304_when_it_is_and_costs_no_bytes(
    site: Site, tmp_path: Path
) -> None:
    """Carried by a decision, then asked for with the validators of the visit before."""
    served = Served(0, site.server_port, 1, tmp_path / "ca.pem", None)
    more = '[output]\ndatabase-path = "map.db"\n[store]\nhtml = true\n[revisit]\nschedule = "30d"\n'
    more += "[discovery]\nsitemaps = false\n"
    path = config_for(tmp_path / "kept", served, ("a.test",), more=more)
    folder = path.parent
    text = path.read_text()
    crawl_quickly(path)
    site.take_seen()
    whole = digest(folder / "map.db")
    crawl_quickly(path)
    assert site.take_seen() == [], "nothing is due"
    assert digest(folder / "map.db") == whole
    url = f"https://a.test{PLAIN[0]}"
    found = explain(load(path), folder / "map.db", url)
    assert found.revisit is not None and found.revisit.carried_run == 2 and found.revisit.next_crawl_at is not None
    assert "not due in run 2, and carried into it without a visit" in found.text()
    assert f"due at {found.revisit.next_crawl_at[:16]}" in found.text() and "its interval is 30 days" in found.text()
    status = Status(open_workspace(load(path).workspace), folder / "map.db")
    planned = status.as_json()["revisits"]
    assert planned["pages"] > len(PLAIN) and planned["due"] == 0 and planned["next_crawl_at"].endswith("Z")
    assert any(f"of {planned['pages']} pages due now, the next at 20" in line for line, _ in status.lines())

    # The 304s bring no bytes, so a limit that the pages' own sizes exceed is not reached.
    site.pages[PLAIN[0]] = "x"
    sent_again = (PLAIN[0], "/no-validators", "/noarchive", "/suffix", "/other-etag", "/false-etag", "/always-304")
    size = sum(len(page) for page in site.pages.values())
    limit = sum(len(site.pages[each]) for each in sent_again) + 1
    assert limit < size
    due = text.replace('schedule = "30d"', 'schedule = "always"')
    path.write_text(due.replace("[store]", f"[limits]\nmax-bytes = {limit}\n[store]"))
    crawl_quickly(path)
    seen = {path: (conditions, status) for _, path, conditions, status in site.take_seen()}
    assert seen[PLAIN[0]] == ("etag+date", 200)
    assert all(seen[path] == ("etag+date", 304) for path in (*PLAIN[1:], "/nofollow"))
    assert rows(folder, "SELECT status FROM runs WHERE id = 3", "map.db") == [("completed",)]
    counts = VisitCounts.read(rows(folder, "SELECT value FROM meta WHERE name = 'visit_counters'", "map.db")[0][0])
    assert counts.bytes < 2 * size, "what was carried or confirmed was not sent"
    assert sum(counts.outcomes.values()) == 2 * len(site.pages), "two visits each: what was carried is none"
    logged = (folder / "workspace" / "logs" / "pages-3.csv").read_text()
    assert (
        logged.count(",304,") == len(site.pages) - len(sent_again)
        and not (folder / "workspace" / "logs" / "pages-2.csv").exists()
    )

    # Validators belong to our own request headers: another name, and every page is fetched whole.
    assert Status(open_workspace(load(path).workspace), folder / "map.db").planned is None, "nothing is planned now"
    path.write_text(due.replace("me@a.test", "you@a.test"))
    crawl_quickly(path)
    assert {conditions for _, _, conditions, _ in site.take_seen()} == {""}
