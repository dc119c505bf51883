"""Folders of HTML over many hosts, and the server that gives them out."""

from __future__ import annotations

import ssl
import time
from collections import Counter
from pathlib import Path

import pytest
import urllib3
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.pipeline import disagreement
from benchmarks.sites import (
    SPREAD,
    Host,
    Layout,
    choose,
    find_documentation,
    lay_out,
    lay_out_whole,
    read_site,
    read_sites,
)
from benchmarks.webserver import Seen, WebServer, find_nginx, read_line, serve_layout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small site: the start page links two chapters, one of them a page with a difficult name."""
    pages = {
        "index.html": '<a href="b/two.html#top">2</a><a href="a.html">1</a><a href="#x">x</a><a href="gone.html">g</a>',
        "a.html": '<a href="b/it&#39;s%20100%25.html">odd</a>',
        "b/two.html": '<a href="../index.html">up</a>',
        "b/it's 100%.html": "<p>odd</p>",
        "alone.html": "<p>nothing links here</p>",
    }
    for path, body in pages.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(f"<!DOCTYPE html><title>{path}</title>{body}")
    return tmp_path.resolve()


def test_pages_come_breadth_first_and_the_unlinked_last(folder: Path) -> None:
    pages = read_site(folder, 5).pages
    assert pages == ("index.html", "b/two.html", "a.html", "b/it's 100%.html", "alone.html")
    assert read_site(folder, 2).pages == ("index.html", "b/two.html")


def test_a_folder_with_too_few_pages_is_left_out(folder: Path) -> None:
    assert read_sites([folder], 6) == []
    assert len(read_sites([folder], 5)) == 1
    assert read_sites([folder / "nowhere"], 1) == []


def test_a_whole_site_has_all_pages_and_large_folders_are_left_out(folder: Path) -> None:
    layout = lay_out_whole([folder, folder / "b"], 3, 5)
    assert [(host.root, len(host.pages)) for host in layout.hosts] == [
        (folder / "b", 2),
        (folder, 5),
        (folder / "b", 2),
    ]
    assert {host.root for host in lay_out_whole([folder, folder / "b"], 3, 4).hosts} == {folder / "b"}
    assert [len(host.pages) for host in lay_out_whole([folder], 1, 2).hosts] == [5], "the smallest, where all are large"
    assert lay_out_whole([folder / "nowhere"], 3, 5).hosts == ()


def test_documentation_is_found_by_pattern_and_once(folder: Path) -> None:
    (folder / "link").symlink_to(folder / "b")
    places = [f"{folder}/b*", f"{folder}/link", f"{folder}/nowhere-*"]
    assert find_documentation(places) == [folder / "b"]


@given(st.integers(2, 200), st.integers(0, 50), st.integers(1, 40))
def test_a_host_gets_the_start_page_and_as_many_others_as_there_are(there: int, turn: int, count: int) -> None:
    pages = tuple(f"{number}.html" for number in range(there))
    chosen = choose(pages, turn, count)
    assert chosen[0] == "0.html"
    assert len(set(chosen)) == len(chosen) == min(count, there)


def test_hosts_of_a_site_have_different_pages_as_far_as_there_are() -> None:
    pages = tuple(f"{number}.html" for number in range(1 + 10 * SPREAD))
    turns = [choose(pages, turn, 11) for turn in range(SPREAD)]
    assert Counter(page for turn in turns for page in turn[1:]) == Counter(pages[1:])
    assert choose(pages, SPREAD, 11) == turns[0]


def test_urls_are_interleaved_by_host_and_each_stands_once(folder: Path) -> None:
    layout = lay_out(read_sites([folder], 4), 3, 4)
    urls = layout.urls()
    assert len(set(urls)) == len(urls) == 12
    assert [url.split("/")[2] for url in urls[:4]] == ["h0.docs.test", "h1.docs.test", "h2.docs.test", "h0.docs.test"]
    assert "https://h0.docs.test/b/it's%20100%25.html" in urls
    assert layout.first(2).urls() == [url for url in urls if "h2." not in url]


SERVERS = ["own", pytest.param("nginx", marks=pytest.mark.skipif(find_nginx() is None, reason="no nginx here"))]


@pytest.mark.parametrize("name", SERVERS)
def test_both_servers_give_out_the_listed_pages_and_log_them(name: str, folder: Path, tmp_path: Path) -> None:
    layout = Layout((Host("h0.docs.test", folder, ("index.html", "b/it's 100%.html")),))
    with serve_layout(layout, tmp_path / "server", nginx=find_nginx() if name == "nginx" else None) as server:
        began = time.time()
        assert server.name == name
        for url, page in zip(layout.urls(), layout.hosts[0].pages, strict=True):
            target = "/" + url.split("/", 3)[3]
            assert _ask(server, "GET", target) == (200, (folder / page).read_bytes())
            assert _ask(server, "HEAD", target) == (200, b"")
        assert _ask(server, "GET", "/gone.html")[0] == 404
        assert _ask(server, "GET", "/robots.txt") == (200, b"User-agent: *\nDisallow: /private/\n")
        seen = server.seen(began - 1)
        assert [(each.method, each.path) for each in seen][:4] == [
            ("GET", "index.html"),
            ("HEAD", "index.html"),
            ("GET", "b/it's 100%.html"),
            ("HEAD", "b/it's 100%.html"),
        ]
        assert {each.host for each in seen} == {"h0.docs.test"}
        assert server.seen(time.time() + 60) == []
        assert server.cpu() >= 0
    with pytest.raises(urllib3.exceptions.HTTPError):
        _ask(server, "GET", "/index.html")


def _ask(server: WebServer, method: str, target: str) -> tuple[int, bytes]:
    context = ssl.create_default_context(cafile=str(server.ca_path))
    with urllib3.HTTPSConnectionPool(
        "127.0.0.1", server.port, ssl_context=context, server_hostname="h0.docs.test", assert_hostname="h0.docs.test"
    ) as pool:
        answer = pool.request(method, target, headers={"Host": "h0.docs.test"}, retries=False)
        return answer.status, answer.data


def test_a_request_begins_as_long_before_its_end_as_it_took() -> None:
    line = "1700000000.500 0.250 h1.docs.test GET 200 /a%20b.html"
    assert read_line(line) == Seen(1700000000.25, 1700000000.5, "h1.docs.test", "GET", 200, "a b.html")


def test_pages_missing_unlisted_or_fetched_twice_are_told(folder: Path) -> None:
    layout = Layout((Host("h0.docs.test", folder, ("index.html", "a.html")),))
    assert disagreement(["h0.docs.test/index.html", "h0.docs.test/a.html"], layout, "it") == []
    found = disagreement(["h0.docs.test/index.html", "h0.docs.test/index.html", "h0.docs.test/x.html"], layout, "it")
    assert [words.partition(", e.g. ")[::2] for words in found] == [
        ("it: 1 pages missing", "h0.docs.test/a.html"),
        ("it: 1 pages not listed", "h0.docs.test/x.html"),
        ("it: 1 pages fetched twice", "h0.docs.test/index.html"),
    ]
