"""A real fetcher among servers that mean harm: every page ends in the right state, every worker lives on."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from crawler.model.records import PageResult
from crawler.model.settings import Config, CrawlerSettings
from crawler.model.states import slug_of
from crawler.net.connection import MOST_OVERHEAD
from crawler.observe.audit import audit
from crawler.workspace.files.file_workspace import FileWorkspace
from tests.hostile import COMPRESSORS, TRICKS, HostileServer, bomb
from tests.pipeline.fetching import finish, pages, prepare, release, start_fetcher, wait_for

SLOTS = 50
Ends = tuple[str, str | None] | tuple[str, frozenset[str]]

DEAD, FAILED, UNREACHABLE, MISMATCH = "dead_link", "failed", "unreachable", "content_mismatch"
TIME_OR_SIZE = frozenset({"timeout", "too-large"})  # whichever limit a busy machine meets first

# What does not end as `processed`: path → state and slug.
ENDS: dict[str, Ends] = {
    # statuses
    "/403": (FAILED, "http-403"),
    "/410": (DEAD, "http-410"),
    "/500": (FAILED, "http-500"),
    "/503-retry-after": (FAILED, "http-503"),
    "/flapping": (FAILED, "http-502"),
    "/gone": (DEAD, "http-404"),
    "/gone-bomb": (DEAD, "http-404"),
    "/gone-not-gzip": (DEAD, "http-404"),
    "/status-999": (FAILED, "http-999"),
    "/to/304": (FAILED, "http-304"),
    "/~429": ("rate_limited", "http-429"),
    # HEAD and types
    "/file.pdf": (MISMATCH, "content-mismatch"),
    "/head-404-get-200": (DEAD, "http-404"),
    "/no-type-binary": (MISMATCH, "content-mismatch"),
    "/says-html-is-pdf": (MISMATCH, "content-mismatch"),
    "/says-pdf-is-html": (MISMATCH, "content-mismatch"),
    # time
    "/drip-body": (FAILED, "timeout"),
    "/drip-chunk-size": (FAILED, "timeout"),
    "/drip-chunks": (FAILED, "timeout"),
    "/drip-headers": (FAILED, "timeout"),
    "/drip-status": (FAILED, "timeout"),
    "/silent": (FAILED, "timeout"),
    "/~held": (FAILED, "timeout"),
    # size
    "/bomb-br": (FAILED, TIME_OR_SIZE),
    "/bomb-deflate": (FAILED, TIME_OR_SIZE),
    "/bomb-gzip": (FAILED, TIME_OR_SIZE),
    "/bomb-stacked": (FAILED, TIME_OR_SIZE),
    "/bomb-zstd": (FAILED, TIME_OR_SIZE),
    "/attribute-flood": (FAILED, TIME_OR_SIZE),
    "/controls": (FAILED, TIME_OR_SIZE),
    "/one-tag": (FAILED, TIME_OR_SIZE),
    "/paragraphs": (FAILED, TIME_OR_SIZE),
    "/trailer-after-body": (FAILED, "too-large"),
    "/endless-body": (FAILED, TIME_OR_SIZE),
    "/endless-chunks": (FAILED, TIME_OR_SIZE),
    "/endless-tiny-chunks": (FAILED, TIME_OR_SIZE),
    "/endless-trailer": (FAILED, "too-large"),
    "/header-flood": (FAILED, "too-large"),
    "/long-header": (FAILED, "too-large"),
    "/long-status": (FAILED, "too-large"),
    "/million-links": (FAILED, TIME_OR_SIZE),
    # framing and encodings
    "/bad-chunk-end": (FAILED, "bad-response"),
    "/bad-chunk-size": (FAILED, "bad-response"),
    "/bad-status": (FAILED, "bad-response"),
    "/closes-at-once": (UNREACHABLE, "connection-reset"),
    "/empty-blocks": (FAILED, "too-costly"),
    "/empty-members": (FAILED, "too-costly"),
    "/early-close-chunk": (FAILED, "early-close"),
    "/early-close-headers": (FAILED, "early-close"),
    "/endless-interim": (FAILED, "bad-response"),
    "/garbage": (FAILED, "bad-response"),
    "/garbage-endless": (FAILED, "bad-response"),
    "/http09": (FAILED, "bad-response"),
    "/length-too-long": (FAILED, "early-close"),
    "/length-twice": (FAILED, "bad-response"),
    "/not-gzip": (FAILED, "bad-encoding"),
    "/resets": (UNREACHABLE, "connection-reset"),
    "/switches-protocol": (FAILED, "bad-response"),
    "/too-many-codings": (FAILED, "bad-encoding"),
    # redirects
    "/ever-new-order": (FAILED, "redirect-limit"),
    "/slash-ping": (FAILED, "redirect-loop"),
    "/slash-ping/": (FAILED, "redirect-loop"),
    "/to/empty": (FAILED, "bad-redirect"),
    "/to/file": (FAILED, "bad-redirect"),
    "/to/fragment": (FAILED, "redirect-loop"),
    "/to/ftp": (FAILED, "bad-redirect"),
    "/to/itself": (FAILED, "redirect-loop"),
    "/to/javascript": (FAILED, "bad-redirect"),
    "/to/mailto": (FAILED, "bad-redirect"),
    "/to/malformed": (FAILED, "bad-redirect"),
    "/to/none": (FAILED, "bad-redirect"),
    "/to/nonsense": (FAILED, "bad-redirect"),
}
HOSTS: dict[str, Ends] = {
    "expired.test": (UNREACHABLE, "tls"),
    "hangs-up.test": (UNREACHABLE, "tls"),
    "late-tickets.test": (FAILED, "bad-response"),
    "old-tls.test": (UNREACHABLE, "tls"),
    "plain-http.test": (UNREACHABLE, "tls"),
    "resets.test": (FAILED, "robots-unreachable"),
    "self-signed.test": (UNREACHABLE, "tls"),
    "silent.test": (FAILED, "robots-unreachable"),
    "slow-tls.test": (FAILED, "robots-unreachable"),
    "tickets.test": (FAILED, "robots-unreachable"),
    "wrong-host.test": (UNREACHABLE, "tls"),
    "robots-403.test": ("processed", None),
    "robots-404.test": ("processed", None),
    "robots-429.test": (FAILED, "robots-unreachable"),
    "robots-503.test": (FAILED, "robots-unreachable"),
    "robots-bom.test": ("processed", None),
    "robots-closed.test": (FAILED, "robots-denied"),
    "robots-delay.test": ("processed", None),
    "robots-agents.test": ("processed", None),
    "robots-dense.test": ("processed", None),
    "robots-digits.test": (FAILED, "crawl-delay-too-long"),
    "robots-drip.test": (FAILED, "robots-unreachable"),
    "robots-foreign.test": ("processed", None),
    "robots-html.test": ("processed", None),
    "robots-huge.test": ("processed", None),
    "robots-long-delay.test": (FAILED, "crawl-delay-too-long"),
    "robots-loop.test": ("processed", None),
    "robots-reset.test": (FAILED, "robots-unreachable"),
}
REDIRECTED = {
    "/chain/0": "/chain/1",
    "/to/300": "/plain",
    "/to/301": "/plain",
    "/to/303": "/plain",
    "/to/307": "/plain",
    "/to/308": "/plain",
    "/to/absolute": "https://tricks.test/plain",
    "/to/http": "https://tricks.test/plain",
    "/to/latin": "/caf%E9",
    "/to/metadata": "https://169.254.169.254/latest/meta-data/",
    "/to/odd-loopback": "https://127.0.0.1/",
    "/to/protocol-relative": "https://tricks.test/plain",
    "/to/query": "/to/query?a=1",
    "/to/relative": "/plain",
    "/to/userinfo": "https://tricks.test/plain",
}
HEAVY = [path for path, ends in ENDS.items() if ends[1] in (TIME_OR_SIZE, "too-large")]


@dataclass
class Crawled:
    """One crawl over everything, judged by several tests."""

    config: Config
    workspace: FileWorkspace
    server: HostileServer
    fetcher: subprocess.Popen[bytes]
    by_url: dict[str, PageResult]


def trick_url(path: str, lap: str = "") -> str:
    """Each trick on a host of its own, so that none waits for another."""
    return f"https://t{list(TRICKS).index(path)}{lap}.tricks.test{path}"


def results(workspace: FileWorkspace) -> dict[str, PageResult]:
    return {page.wire: page for page in pages(workspace)}


def rss(pid: int) -> int:
    """Bytes of memory that a process holds now."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    folder = tmp_path_factory.mktemp("hostile")
    for coding in (*COMPRESSORS, "gzip+gzip"):
        bomb(coding)  # made before the clock runs
    with HostileServer(folder) as server:
        config = Config(
            crawler=CrawlerSettings(
                minimum_time_on_page=100,
                max_concurrent_pages_open=SLOTS,
                retries=1,
                retry_delay=100,
                robots_retries=1,
                robots_retry_delay=100,
            ),
            network=server.network(
                connect_timeout=8000, read_timeout=6000, total_timeout=10_000, max_body_size=3 * 1024 * 1024
            ),
            workspace=folder / "ws",
        )
        workspace = prepare(config)
        urls = [trick_url(path) for path in TRICKS] + [f"https://{host}/plain" for host in HOSTS]
        urls += [
            "https://order.tricks.test/reorder?a=1&b=2",
            "https://robots-huge.test/private",
            "https://robots-huge.test/too-late",
        ]
        urls += ["https://robots-bom.test/private", "https://robots-foreign.test/private"]
        release(workspace, urls)
        fetcher = start_fetcher(config, folder)
        try:
            wait_for(lambda: len(results(workspace)) == len(urls), 90)
            yield Crawled(config, workspace, server, fetcher, results(workspace))
        finally:
            fetcher.send_signal(signal.SIGTERM)
            fetcher.wait(30)


@pytest.mark.xdist_group("hostile")
def test_every_hostile_page_ends_in_its_state_with_its_slug(crawled: Crawled) -> None:
    wrong = []
    expected = {trick_url(path): ENDS.get(path, ("processed", None)) for path in TRICKS}
    expected |= {f"https://{host}/plain": ends for host, ends in HOSTS.items()}
    for url, (state, slug) in expected.items():
        page = crawled.by_url[url]
        found = slug_of(page.error)
        if page.state != state or (found not in slug if isinstance(slug, frozenset) else found != slug):
            wrong.append((url, page.state, page.error))
    assert wrong == []


@pytest.mark.xdist_group("hostile")
def test_a_flood_of_session_tickets_is_left_early(crawled: Crawled) -> None:
    """`SSL_read` on a socket does not return while they come, whatever its timeout: 15 s of a flood took 15 s."""
    assert "TLS messages without any data" in (crawled.by_url["https://late-tickets.test/plain"].error or "")
    # What the client read, and what lay in the buffers of both ends.
    assert 0 < crawled.server.flooded < MOST_OVERHEAD + 16 * 1024 * 1024


@pytest.mark.xdist_group("hostile")
def test_a_truncated_page_says_so_in_its_record(crawled: Crawled) -> None:
    marked = {url for url, page in crawled.by_url.items() if page.truncated}
    assert marked == {trick_url("/truncated-gzip")}


@pytest.mark.xdist_group("hostile")
def test_redirects_out_of_the_key_name_their_target_and_go_no_further(crawled: Crawled) -> None:
    for path, target in REDIRECTED.items():
        url = trick_url(path)
        page = crawled.by_url[url]
        origin = url[: -len(path)]
        assert page.redirect == (target if target.startswith("https:") else origin + target), path
    assert not any(seen.host in ("127.0.0.1", "169.254.169.254") for seen in crawled.server.seen())


@pytest.mark.xdist_group("hostile")
def test_redirects_within_the_key_are_followed_to_the_page(crawled: Crawled) -> None:
    for url in (trick_url("/dir"), trick_url("/to-www"), "https://order.tricks.test/reorder?a=1&b=2"):
        page = crawled.by_url[url]
        assert (page.state, page.status, page.redirect) == ("processed", 200, None)
        assert "/plain" in page.hrefs


@pytest.mark.xdist_group("hostile")
def test_robots_files_of_every_kind_are_obeyed(crawled: Crawled) -> None:
    for host in ("robots-huge.test", "robots-bom.test", "robots-foreign.test"):
        assert slug_of(crawled.by_url[f"https://{host}/private"].error) == "robots-denied"
    assert slug_of(crawled.by_url["https://robots-huge.test/too-late"].error) == "http-404"


@pytest.mark.xdist_group("hostile")
def test_userinfo_never_reaches_the_wire_or_a_record(crawled: Crawled) -> None:
    for segment in crawled.workspace.layout.results.rglob("*.jsonl"):
        assert b"secret" not in segment.read_bytes()
    assert not any("secret" in seen.path or "@" in seen.host for seen in crawled.server.seen())


@pytest.mark.xdist_group("hostile")
def test_all_workers_are_alive_after_it_and_the_ledgers_are_clean(crawled: Crawled) -> None:
    assert crawled.fetcher.poll() is None

    def facts() -> dict[str, int]:
        found: dict[str, int] = orjson.loads(crawled.workspace.layout.status_of("fetcher-01").read_bytes())["facts"]
        return found

    wait_for(lambda: facts()["in_flight"] == 0)  # the heartbeat is a second behind
    assert facts()["slots"] == SLOTS
    report = audit(crawled.config)
    assert report.is_clean, list(report.lines())


@pytest.mark.xdist_group("hostile")
def test_memory_is_flat_under_bombs_and_floods(crawled: Crawled) -> None:
    """The second lap of everything big may not need more memory than the first one left behind."""

    def lap(name: str) -> int:
        before = len(results(crawled.workspace))
        release(crawled.workspace, [trick_url(path, name) for path in HEAVY])
        wait_for(lambda: len(results(crawled.workspace)) == before + len(HEAVY), 60)
        return rss(crawled.fetcher.pid)

    first = lap("b")
    assert lap("c") - first < 40 * 1024 * 1024


@pytest.mark.xdist_group("hostile")
def test_the_fetcher_ends_by_itself_when_the_run_does(crawled: Crawled) -> None:
    finish(crawled.workspace)
    assert crawled.fetcher.wait(30) == 0
