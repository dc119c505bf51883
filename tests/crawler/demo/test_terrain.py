"""The demo terrain, asked by an independent client: what each site promises to do, it does on the wire."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import lxml.html
import pytest
import requests
import tomli
from requests.adapters import HTTPAdapter

from crawler.demo.demo_config import DemoLimits, write_demo_config
from crawler.demo.server import Served, serve_terrain
from crawler.demo.sites import Answer, Certificate, Page, Site, SiteTerrain, response
from crawler.demo.terrain import (
    BLACKLIST,
    IDN_HOST,
    LADDER_HOPS,
    QUALITY,
    REFUSED_HOST,
    SCROLL_LENGTH,
    STUB,
    demo_terrain,
)
from crawler.model.states import WAITING, PageState
from tests.crawler.demo.demo_states import EXPECTED_SLUGS, expected_states


class ToLoopback(HTTPAdapter):
    """Sends every request to the demo server, under the name it was meant for."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        super().__init__()

    def init_poolmanager(self, *arguments: object, **options: object) -> None:
        super().init_poolmanager(  # type: ignore[no-untyped-call]
            *arguments, server_hostname=self._host, assert_hostname=self._host, **options
        )

    def send(self, request: requests.PreparedRequest, *arguments: object, **options: object) -> requests.Response:  # type: ignore[override]
        assert request.url is not None
        request.headers["Host"] = self._host
        request.url = request.url.replace(f"https://{self._host}", f"https://127.0.0.1:{self._port}", 1)
        return super().send(request, *arguments, **options)  # type: ignore[arg-type]


class Client:
    def __init__(self, served: Served) -> None:
        self._served = served
        self._sessions: dict[str, requests.Session] = {}

    def ask(self, method: str, host: str, target: str) -> requests.Response:
        session = self._sessions.get(host)
        if session is None:
            session = self._sessions[host] = requests.Session()
            session.trust_env = False
            session.mount(f"https://{host}", ToLoopback(host, self._served.port))
        return session.request(
            method,
            f"https://{host}{target}",
            allow_redirects=False,
            verify=str(self._served.ca_path),
            timeout=20,
        )

    def get(self, host: str, target: str) -> requests.Response:
        return self.ask("GET", host, target)

    def head(self, host: str, target: str) -> requests.Response:
        return self.ask("HEAD", host, target)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve_terrain(demo_terrain(), tmp_path_factory.mktemp("demo"), log=True) as running:
        yield running


@pytest.fixture(scope="module")
def client(served: Served) -> Client:
    return Client(served)


def test_the_expected_map_holds_every_state_that_a_finished_crawl_can() -> None:
    assert set(expected_states().values()) == {str(state) for state in PageState if state not in WAITING}


def test_there_are_at_least_fourteen_domains_and_every_expected_page_is_on_one_of_them() -> None:
    hosts = {host for site in demo_terrain().sites for host in site.hosts} | {REFUSED_HOST}
    domains = {key.split("/")[2] for key in expected_states()}
    assert len(domains) >= 14
    assert domains <= hosts


def test_two_quality_domains_link_to_each_other(client: Client) -> None:
    assert "https://chart-room.test/" in client.get("tea-almanac.test", "/").text
    assert "https://tea-almanac.test/" in client.get("chart-room.test", "/").text


def test_every_processed_page_answers_200_as_html_or_redirects(client: Client) -> None:
    for key, state in expected_states().items():
        if state != "processed":
            continue
        _, _, host, *path = key.split("/")
        target = "/" + "/".join(path)
        answer = client.get(host, target)
        if answer.status_code == 503:  # the faltering one
            client.get(host, target)
            answer = client.get(host, target)
        elif answer.status_code == 404:  # known only with its slash, as every link to it has it
            answer = client.get(host, target + "/")
        assert answer.status_code in (200, 301, 302, 303, 307, 308), key
        if answer.status_code == 200:
            assert answer.headers["Content-Type"].startswith("text/html"), key
            assert answer.text.count("<title>") == 1
        else:
            assert answer.headers["Location"], key


def test_head_answers_like_get_without_the_body(client: Client) -> None:
    head, get = client.head("tea-almanac.test", "/brewing"), client.get("tea-almanac.test", "/brewing")
    assert head.status_code == get.status_code == 200
    assert head.headers["Content-Length"] == get.headers["Content-Length"] == str(len(get.content))
    assert head.content == b""
    assert head.headers["Content-Type"] == get.headers["Content-Type"]


def test_dead_links_answer_404_and_410(client: Client) -> None:
    assert client.head("tea-almanac.test", "/brewing/with-snow").status_code == 404
    assert client.head("tea-almanac.test", "/brewing/tin-kettle").status_code == 410


def test_every_page_of_the_busy_counter_answers_429_but_its_robots_file_is_there(client: Client) -> None:
    for target in ("/", "/spring", "/autumn", "/orders?open=1", "/anything"):
        assert client.get("busy-counter.test", target).status_code == 429
        assert client.head("busy-counter.test", target).status_code == 429
    assert client.get("busy-counter.test", "/robots.txt").status_code == 200


def test_pages_of_the_busy_counter_are_linked_from_one_page_only() -> None:
    """So that the first of them to be asked for does not depend on which linking page came first."""
    linking = {
        (site.host, page.path)
        for site in demo_terrain().sites
        for page in site.pages
        for href, _ in (*page.links, *site.menu, *site.footer)
        if "busy-counter.test" in href
    }
    assert linking == {("tea-almanac.test", "/seasons")}


def test_the_faltering_page_fails_twice_whatever_the_method_and_is_well_for_ever_after(
    tmp_path: Path,
) -> None:
    with serve_terrain(demo_terrain(), tmp_path) as running:
        client = Client(running)
        wheel = "storm-mill.test", "/waterwheel"
        assert [client.head(*wheel).status_code, client.get(*wheel).status_code] == [503, 503]
        assert [client.head(*wheel).status_code for _ in range(3)] == [200] * 3
        assert client.get(*wheel).status_code == 200
        assert [client.get("storm-mill.test", "/sails").status_code for _ in range(8)] == [503] * 8


def test_a_file_behind_a_page_like_name_says_html_only_to_head(client: Client) -> None:
    assert client.head("chart-room.test", "/files/harbour-plan").headers["Content-Type"] == "text/html"
    assert client.get("chart-room.test", "/files/harbour-plan").headers["Content-Type"] == "application/pdf"
    assert client.head("chart-room.test", "/files/tide-table.pdf").headers["Content-Type"] == "application/pdf"


def test_head_is_refused_where_only_get_will_do(client: Client) -> None:
    assert client.head("type.press-garden.test", "/ligatures").status_code == 405
    assert client.get("type.press-garden.test", "/ligatures").status_code == 200


def test_three_redirects_lead_over_two_domains_to_a_page(client: Client) -> None:
    assert client.head("winding-path.test", "/start").headers["Location"] == "/bend"
    assert client.head("winding-path.test", "/bend").headers["Location"] == "//winding-path.test/rest?seen=1"
    assert client.head("winding-path.test", "/rest?seen=1").headers["Location"] == "https://moss-notes.test/turn"
    assert client.get("moss-notes.test", "/turn").status_code == 200


def test_the_spiral_stair_has_twelve_redirects_and_a_top(client: Client) -> None:
    target, hops = "/step/0", 0
    while (answer := client.head("spiral-stair.test", target)).status_code != 200:
        target, hops = answer.headers["Location"], hops + 1
    assert hops == LADDER_HOPS == 12


def test_the_loop_comes_back_to_where_it_began(client: Client) -> None:
    seen = ["/loop/a"]
    for _ in range(3):
        seen.append(client.head("winding-path.test", seen[-1]).headers["Location"])
    assert seen[0] == seen[3]


def test_bare_host_and_missing_slash_are_redirected_to_the_same_page(client: Client) -> None:
    assert client.head("press-garden.test", "/").headers["Location"] == "https://www.press-garden.test/"
    assert client.get("www.press-garden.test", "/").status_code == 200
    assert client.head("tea-almanac.test", "/teas").headers["Location"] == "/teas/"
    assert client.get("tea-almanac.test", "/teas/").status_code == 200


def test_tracking_parameters_and_slashes_do_not_change_what_is_served(client: Client) -> None:
    plain = client.get("tea-almanac.test", "/teas/green").content
    assert client.get("tea-almanac.test", "/teas/green?utm_source=home&utm_medium=web").content == plain


def test_the_calendar_has_only_ever_one_next_day(client: Client) -> None:
    document = lxml.html.fromstring(client.get("chart-room.test", "/tides?day=7").text)
    days = {href for href in document.xpath("//main//a/@href") if "day=" in href}
    assert days == {"/tides?day=8"}


def test_old_encodings_decode_to_the_titles_they_were_written_with(client: Client) -> None:
    coast, island = (
        client.get("chart-room.test", "/maps/coast"),
        client.get("chart-room.test", "/maps/island"),
    )
    assert "charset" not in coast.headers["Content-Type"]
    assert "Café “Küste” – The Chart Room" in coast.content.decode("windows-1252")
    assert island.headers["Content-Type"] == "text/html; charset=shift_jis"
    assert "島の地図" in island.content.decode("shift_jis")


def test_robots_files_say_what_the_sites_want(client: Client) -> None:
    assert "Crawl-delay: 0.3" in client.get("quiet-abbey.test", "/robots.txt").text
    assert "Disallow: /kitchen/" in client.get("tea-almanac.test", "/robots.txt").text
    assert client.get("foggy-harbour.test", "/robots.txt").status_code == 503
    assert client.get("moss-notes.test", "/robots.txt").status_code == 404


def test_the_hostile_title_arrives_with_its_escapes(client: Client) -> None:
    assert "\x1b[31m" in client.get("chart-room.test", "/errata").text


def test_a_name_beyond_ascii_is_served_in_punycode(client: Client) -> None:
    assert "Blätterwald" in client.get(IDN_HOST, "/").content.decode()
    assert client.get(IDN_HOST, "/%C3%A4ste").status_code == 200


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("rusty-lock.test", "unable to get local issuer"),
        ("wrong-name.test", "mismatch"),
        ("old-seal.test", "expired"),
    ],
)
def test_bad_certificates_are_bad_each_in_its_own_way(served: Served, host: str, reason: str) -> None:
    context = ssl.create_default_context(cafile=str(served.ca_path))
    with (
        socket.create_connection(("127.0.0.1", served.port), timeout=20) as raw,
        pytest.raises(ssl.SSLCertVerificationError, match=reason),
    ):
        context.wrap_socket(raw, server_hostname=host)


def test_nothing_listens_on_the_closed_port(served: Served) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", served.closed_port), timeout=20)


def test_pipelined_requests_are_answered_in_order_on_one_connection(served: Served) -> None:
    context = ssl.create_default_context(cafile=str(served.ca_path))
    with (
        socket.create_connection(("127.0.0.1", served.port), timeout=20) as raw,
        context.wrap_socket(raw, server_hostname="moss-notes.test") as secured,
    ):
        one = b"HEAD %b HTTP/1.1\r\nHost: moss-notes.test\r\n\r\n"
        secured.sendall(
            one % b"/walls" + one % b"/lost-stone" + one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") % b"/"
        )
        received = b""
        while chunk := secured.recv(65536):
            received += chunk
    statuses = [line.split()[1] for line in received.split(b"\r\n") if line.startswith(b"HTTP/1.1")]
    assert statuses == [b"200", b"404", b"200"]


def test_broken_requests_end_their_connection_and_nothing_else(served: Served, client: Client) -> None:
    context = ssl.create_default_context(cafile=str(served.ca_path))
    for rubbish in (
        b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"BREW /pot HTTP/1.1\r\nHost: x\r\n\r\n",
        b"x" * 100_000,
    ):
        with (
            socket.create_connection(("127.0.0.1", served.port), timeout=20) as raw,
            context.wrap_socket(raw, server_hostname="moss-notes.test") as secured,
        ):
            try:
                secured.sendall(rubbish)
                while secured.recv(65536):
                    pass
            except OSError:
                pass  # it hung up before we had finished: just as well
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: plain\r\n\r\n")
        raw.settimeout(20)
        try:
            while raw.recv(4096):
                pass
        except OSError:
            pass
    assert client.get("moss-notes.test", "/").status_code == 200


def test_a_large_answer_arrives_whole(tmp_path: Path) -> None:
    body = os.urandom(3_000_000)
    site = Site("big.test", "Big", (Page("/", raw=body, content_type="application/octet-stream"),))
    with serve_terrain(SiteTerrain((site,)), tmp_path) as running:
        assert Client(running).get("big.test", "/").content == body


class SlowTerrain:
    """One page that the server thinks about, and one that it does not."""

    certificates = (Certificate(("*.slow.test",)),)

    def answer(self, host: str, method: str, target: str) -> Answer:
        return Answer(response(200, target.encode(), "text/plain"), delay=0.2 if target == "/slow" else 0.0)


def test_a_slow_answer_does_not_hold_up_others_and_one_certificate_serves_a_wildcard(tmp_path: Path) -> None:
    with serve_terrain(SlowTerrain(), tmp_path) as running:
        context = ssl.create_default_context(cafile=str(running.ca_path))
        with (
            socket.create_connection(("127.0.0.1", running.port), timeout=20) as raw,
            context.wrap_socket(raw, server_hostname="a.slow.test") as patient,
        ):
            patient.sendall(
                b"GET /slow HTTP/1.1\r\nHost: a.slow.test\r\n\r\nGET /next HTTP/1.1\r\nHost: a.slow.test\r\n\r\n"
            )
            assert Client(running).get("b.slow.test", "/quick").text == "/quick"
            received = b""
            while not received.endswith(b"/next"):
                received += patient.recv(65536)
        assert received.index(b"/slow") < received.index(b"/next")


def test_the_log_has_a_line_for_each_request_in_the_order_they_came(tmp_path: Path) -> None:
    with serve_terrain(demo_terrain(), tmp_path, log=True) as running:
        client = Client(running)
        client.head("moss-notes.test", "/walls?x=1")
        client.get("tea-almanac.test", "/nothing")
        seen = running.requests()
    assert [(one.host, one.method, one.target) for one in seen] == [
        ("moss-notes.test", "HEAD", "/walls?x=1"),
        ("tea-almanac.test", "GET", "/nothing"),
    ]
    assert seen[0].at_ns < seen[1].at_ns


def test_the_server_ends_with_its_block_and_with_a_starter_that_is_killed(tmp_path: Path) -> None:
    with serve_terrain(demo_terrain(), tmp_path) as running:
        pid = running.pid
    assert not Path(f"/proc/{pid}").exists()
    program = (
        "import os, sys; from pathlib import Path\n"
        "from crawler.demo.server import serve_terrain; from crawler.demo.terrain import demo_terrain\n"
        "with serve_terrain(demo_terrain(), Path(sys.argv[1])) as running:\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    starter = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "killed")], stderr=subprocess.PIPE)
    _, _ = starter.communicate(timeout=60)  # returns when the server, which shares stderr, is gone too
    assert starter.returncode == -9


def test_the_demo_config_is_whole_and_overrides_reach_it(tmp_path: Path, served: Served) -> None:
    path = write_demo_config(tmp_path / "demo", served, DemoLimits(minimum_time_on_page=250, max_domain_requests=7))
    config = tomli.loads(path.read_text())
    assert config["crawler"]["minimum-time-on-page"] == 250
    assert config["crawler"]["max-domain-requests"] == 7
    assert config["network"]["resolve"] == {
        REFUSED_HOST: f"127.0.0.1:{served.closed_port}",
        "*": f"127.0.0.1:{served.port}",
    }
    assert list(config["network"]["resolve"])[-1] == "*"
    assert Path(config["network"]["ca-bundle"]) == served.ca_path
    assert {entry["domain"]: tuple(entry["seeds"]) for entry in config["quality"]} == QUALITY
    assert [entry["domain"] for entry in config["blacklist"]] == list(BLACKLIST)
    assert [entry["domain"] for entry in config["stub"]] == list(STUB)


def test_only_the_long_scroll_can_outgrow_the_demo_budget() -> None:
    """Counting what a domain needs: robots for each host, HEAD and GET of every page, retries, hops."""
    budget = DemoLimits().max_domain_requests
    needs: dict[str, int] = {}
    for key, state in expected_states().items():
        domain = key.split("/")[2]
        cost = {"processed": 2, "content_mismatch": 2, "failed": 1, "dead_link": 1}.get(state, 0)
        needs[domain] = needs.get(domain, 1) + cost
    needs["storm-mill.test"] += 2 * 3 + 2  # two pages that never recover, one that does
    needs["press-garden.test"] += 3 * 2 + 1  # every page over the bare host, and two robots files
    needs["chart-room.test"] += 1
    scroll = needs.pop("long-scroll.test")
    assert scroll >= budget - 1 and budget < SCROLL_LENGTH * 2
    assert max(needs.values()) < budget, needs


def test_slugs_are_expected_only_of_pages_that_end_badly() -> None:
    states = expected_states()
    assert all(states[key] in ("failed", "unreachable") for key in EXPECTED_SLUGS)
