"""The HTTP client against a hostile server over real TLS: every trick ends in a Response or a Failure with a slug."""

from __future__ import annotations

import socket
import ssl
import threading
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from crawler.model.content_types import is_html
from crawler.model.messages import ERROR_PAGE_SIZE, Answer, BodyWanted, Failure, Request, Response
from crawler.model.settings import NetworkSettings
from crawler.net.client import HttpClient
from crawler.visit.html import header_says_nofollow
from tests.hostile import TRICKS, Exchange, HostileServer
from tests.in_hub import HubClient

AGENT = "SumiRipple/1.0 (+https://example.org/bot; bot@example.org)"
LIMIT = 300_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileServer]:
    with HostileServer(tmp_path_factory.mktemp("hostile"), pace=0.02) as running:
        yield running


def patient(server: HostileServer, **changes: Any) -> NetworkSettings:
    return server.network(read_timeout=20_000, total_timeout=20_000, connect_timeout=20_000, **changes)


@pytest.fixture(params=[HttpClient, HubClient], ids=["own thread", "hub"])
def client(server: HostileServer, request: pytest.FixtureRequest) -> Iterator[HttpClient]:
    """With limits that a loaded machine does not reach."""
    with request.param(patient(server), AGENT) as made:
        yield made


@pytest.fixture(params=[HttpClient, HubClient], ids=["own thread", "hub"])
def hasty(server: HostileServer, request: pytest.FixtureRequest) -> Iterator[HttpClient]:
    """With limits that are soon reached."""
    with request.param(server.network(read_timeout=200, total_timeout=300, connect_timeout=300), AGENT) as made:
        yield made


def get(client: HttpClient, path: str, host: str = "tricks.test", wanted: BodyWanted = BodyWanted.HTML) -> Answer:
    return client.send(Request("GET", f"https://{host}{path}", wanted, LIMIT))


def head(client: HttpClient, path: str, host: str = "tricks.test") -> Answer:
    return client.send(Request("HEAD", f"https://{host}{path}"))


def answered(answer: Answer) -> Response:
    assert isinstance(answer, Response), answer
    return answer


def failed(answer: Answer) -> Failure:
    assert isinstance(answer, Failure), answer
    return answer


# --- honest answers


@pytest.mark.parametrize(
    "path",
    [
        "/plain",
        "/chunked",
        "/until-close",
        "/gzip",
        "/deflate",
        "/deflate-raw",
        "/br",
        "/zstd",
        "/stacked",
        "/no-type",
        "/unknown-coding",
        "/early-hints",
        "/length-nonsense",
        "/length-too-short",
        "/nul-headers",
    ],
)
def test_pages_arrive_decoded_and_whole(client: HttpClient, path: str) -> None:
    response = answered(get(client, path))
    assert response.status == 200
    assert response.body.startswith(b"<!DOCTYPE html>")
    assert response.body.endswith(b"</html>")
    assert not response.is_cut
    assert response.elapsed > 0


def test_the_request_says_exactly_what_it_should(tmp_path: Path) -> None:
    seen: list[bytes] = []

    def echo(x: Exchange) -> None:
        seen.append(x.raw)
        x.page("Echo")

    TRICKS["/~echo"] = echo
    try:
        with HostileServer(tmp_path) as server, HttpClient(patient(server), AGENT) as client:
            client.send(Request("GET", "https://user:secret@tricks.test:443/~echo?q=é x#part", BodyWanted.HTML))
            client.send(Request("HEAD", "https://tricks.test:8443/~echo"))
    finally:
        del TRICKS["/~echo"]
    assert seen[0].decode().split("\r\n") == [
        "GET /~echo?q=%C3%A9%20x HTTP/1.1",
        "Host: tricks.test",
        f"User-Agent: {AGENT}",
        "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.1",
        "Accept-Encoding: gzip, deflate, br, zstd",
        "",
        "",
    ]
    assert b"\r\nHost: tricks.test:8443\r\n" in seen[1]


def test_header_values_are_text_without_controls(client: HttpClient) -> None:
    headers = answered(get(client, "/nul-headers")).headers
    assert headers["x-nul"] == "ab"
    assert headers["x-latin"] == headers["x-utf"] == "café"
    assert headers["x-folded"] == "one two"
    assert headers["x-esc"] == "[31mred"


def test_a_redirect_is_an_answer_with_its_location(client: HttpClient) -> None:
    response = answered(get(client, "/to/latin"))
    assert (response.status, response.headers["location"], response.body) == (302, "/caf%E9", b"")


def test_x_robots_tag_lines_for_everyone_and_for_one_stay_apart(client: HttpClient) -> None:
    assert header_says_nofollow(answered(get(client, "/nofollow-header")).headers["x-robots-tag"], "SumiRipple")


# --- how much of a body is taken


def test_only_html_bodies_are_taken_where_html_is_wanted(client: HttpClient) -> None:
    assert answered(get(client, "/file.pdf")).body == b""
    assert answered(get(client, "/500")).body == b""
    assert answered(get(client, "/file.pdf", wanted=BodyWanted.ANYTHING)).body == b"%PDF-1.4"
    assert answered(get(client, "/gone", wanted=BodyWanted.ANYTHING)).body != b""
    assert answered(get(client, "/plain", wanted=BodyWanted.NOTHING)).body == b""
    assert answered(head(client, "/plain")).body == b""


def test_the_page_of_an_error_is_taken_up_to_a_limit_and_changes_nothing_if_it_is_broken(client: HttpClient) -> None:
    assert b"Not here" in answered(get(client, "/gone")).body
    broken = answered(get(client, "/gone-not-gzip"))
    assert (broken.status, broken.body, client.idle_connections) == (404, b"", 0)
    bombed = answered(get(client, "/gone-bomb"))
    assert (bombed.status, len(bombed.body), client.idle_connections) == (404, ERROR_PAGE_SIZE, 0)
    assert answered(head(client, "/gone")).body == b""


def test_a_body_without_a_type_is_sniffed_and_left_if_it_is_no_page(client: HttpClient) -> None:
    response = answered(get(client, "/no-type-binary"))
    assert not is_html(None, response.body)
    assert len(response.body) < 100_000


# --- size


@pytest.mark.parametrize(
    "path",
    [
        "/bomb-gzip",
        "/bomb-deflate",
        "/bomb-br",
        "/bomb-zstd",
        "/bomb-stacked",
        "/endless-chunks",
        "/endless-body",
        "/megabyte-attribute",
        "/million-links",
    ],
)
def test_what_is_too_big_is_cut_at_the_limit(client: HttpClient, path: str) -> None:
    response = answered(get(client, path))
    assert len(response.body) == LIMIT
    assert response.is_cut


def test_tiny_chunks_without_end_are_cut_too(server: HostileServer) -> None:
    with HttpClient(server.network(total_timeout=60_000, read_timeout=60_000), AGENT) as client:
        assert answered(get(client, "/endless-tiny-chunks")).is_cut


def test_a_bomb_costs_no_more_memory_than_its_limit(client: HttpClient) -> None:
    answered(get(client, "/bomb-gzip"))  # the server makes its bomb now, not while memory is watched
    tracemalloc.start()
    try:
        answered(get(client, "/bomb-gzip"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4_000_000


# --- failures and their slugs


@pytest.mark.parametrize(
    ("path", "slug"),
    [
        ("/too-many-codings", "bad-encoding"),
        ("/not-gzip", "bad-encoding"),
        ("/header-flood", "too-large"),
        ("/long-header", "too-large"),
        ("/long-status", "too-large"),
        ("/endless-trailer", "too-large"),
        ("/endless-interim", "bad-response"),
        ("/length-too-long", "early-close"),
        ("/length-twice", "bad-response"),
        ("/early-close-headers", "early-close"),
        ("/early-close-chunk", "early-close"),
        ("/closes-at-once", "connection-reset"),
        ("/resets", "connection-reset"),
        ("/garbage", "bad-response"),
        ("/garbage-endless", "bad-response"),
        ("/http09", "bad-response"),
        ("/bad-status", "bad-response"),
        ("/switches-protocol", "bad-response"),
        ("/bad-chunk-size", "bad-response"),
        ("/bad-chunk-end", "bad-response"),
    ],
)
def test_bad_answers_have_their_slugs(client: HttpClient, path: str, slug: str) -> None:
    failure = failed(get(client, path))
    assert failure.slug == slug
    assert failure.words
    assert client.idle_connections == 0


@pytest.mark.parametrize(
    "path", ["/drip-status", "/drip-headers", "/drip-body", "/drip-chunks", "/drip-chunk-size", "/silent"]
)
def test_a_server_that_drips_anywhere_is_a_timeout(hasty: HttpClient, path: str) -> None:
    assert failed(get(hasty, path)).slug == "timeout"
    assert hasty.idle_connections == 0


@pytest.mark.parametrize("host", ["slow-tls.test", "silent.test"])
def test_a_handshake_that_drips_or_stops_is_a_timeout(hasty: HttpClient, host: str) -> None:
    assert failed(get(hasty, "/plain", host)).slug == "timeout"


@pytest.mark.parametrize(
    ("host", "slug", "words"),
    [
        ("expired.test", "tls", "expired"),
        ("self-signed.test", "tls", "unknown issuer"),
        ("wrong-host.test", "tls", "another host"),
        ("old-tls.test", "tls", "old version"),
        ("plain-http.test", "tls", "does not speak TLS"),
        ("hangs-up.test", "tls", "closed the connection"),
        ("resets.test", "connection-reset", "reset"),
    ],
)
def test_bad_tls_is_told_in_words(client: HttpClient, host: str, slug: str, words: str) -> None:
    failure = failed(get(client, "/plain", host))
    assert failure.slug == slug
    assert words in failure.words


def test_a_certificate_that_signed_itself_is_called_so(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "alone.test")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(datetime.now(UTC) - timedelta(days=1))
    builder = builder.not_valid_after(datetime.now(UTC) + timedelta(days=1))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("alone.test")]), critical=False)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ) + builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    (tmp_path / "alone.pem").write_bytes(pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "alone.pem")
    with HostileServer(tmp_path) as server:
        server._contexts["alone.test"] = context
        with HttpClient(patient(server), AGENT) as client:
            assert failed(get(client, "/", "alone.test")).message == "tls: the certificate is self-signed"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def test_nobody_listening_is_a_refused_connection() -> None:
    network = NetworkSettings(resolve=(("*", f"127.0.0.1:{free_port()}"),))
    with HttpClient(network, AGENT) as client:
        assert failed(get(client, "/")).slug == "connection-refused"


def test_a_server_that_never_accepts_is_a_timeout() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        crowd = []
        for _ in range(8):  # fills the queue, so that the kernel answers nobody else
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
            crowd.append(one)
        network = NetworkSettings(resolve=(("*", f"127.0.0.1:{port}"),), connect_timeout=200, total_timeout=400)
        with HttpClient(network, AGENT) as client:
            assert failed(get(client, "/")).slug == "timeout"
        for one in crowd:
            one.close()


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1/", "https://2130706433/", "https://[::ffff:7f00:1]/", "https://127.1/"]
)
def test_loopback_is_blocked_before_anything_is_sent(url: str) -> None:
    with HttpClient(NetworkSettings(), AGENT) as client:
        assert failed(client.send(Request("GET", url))).slug == "address-blocked"


def test_the_connection_goes_to_the_checked_address_and_no_name_is_looked_up_again(
    server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_dns(*_: object, **__: object) -> list[object]:
        raise AssertionError("a name was looked up")

    with HttpClient(patient(server), AGENT) as client:
        monkeypatch.setattr(socket, "getaddrinfo", no_dns)
        assert answered(get(client, "/plain")).status == 200


def test_the_next_address_is_tried_when_one_refuses(server: HostileServer) -> None:
    class TwoAddresses:
        def addresses(self, *_: object) -> list[tuple[str, int]]:
            return [("127.0.0.1", free_port()), ("127.0.0.1", server.port)]

        def close(self) -> None:
            pass

    with HttpClient(patient(server), AGENT, resolver=TwoAddresses()) as client:  # type: ignore[arg-type]
        assert answered(get(client, "/plain")).status == 200


@pytest.mark.parametrize(
    "url",
    [
        "http://tricks.test/",
        "ftp://tricks.test/",
        "nonsense",
        "https://",
        "https://a..b/",
        "https://" + "a" * 70 + ".test/",
    ],
)
def test_what_cannot_be_asked_for_is_a_failure_and_no_crash(client: HttpClient, url: str) -> None:
    failed(client.send(Request("GET", url)))


def test_a_method_cannot_smuggle_a_line(client: HttpClient) -> None:
    failed(client.send(Request("GET / HTTP/1.1\r\nX:", "https://tricks.test/")))


def test_a_user_agent_cannot_smuggle_a_line() -> None:
    with pytest.raises(ValueError, match="control"):
        HttpClient(NetworkSettings(), "Bot\r\nX: y")


# --- connections


def test_connections_are_kept_and_used_again(tmp_path: Path) -> None:
    with HostileServer(tmp_path) as server, HttpClient(patient(server), AGENT) as client:
        for path in ("/plain", "/chunked", "/gzip", "/gone", "/to/301", "/204", "/file.pdf", "/plain"):
            answered(head(client, path))
            answered(get(client, path))
        assert server.connections == 1
        assert client.idle_connections == 1


@pytest.mark.parametrize("path", ["/until-close", "/bomb-gzip", "/length-too-short", "/no-type-binary", "/nul-headers"])
def test_a_connection_that_cannot_be_trusted_any_more_is_closed(client: HttpClient, path: str) -> None:
    answered(get(client, path))
    assert client.idle_connections == 0


def test_a_body_after_head_does_not_become_the_next_answer(tmp_path: Path) -> None:
    with HostileServer(tmp_path) as server, HttpClient(patient(server), AGENT) as client:
        for _ in range(5):
            assert answered(head(client, "/head-with-body")).body == b""
            assert b"Plain" in answered(get(client, "/plain")).body


def test_a_connection_that_the_server_closed_at_rest_is_not_used(tmp_path: Path) -> None:
    with HostileServer(tmp_path, keep_alive=False) as server, HttpClient(patient(server), AGENT) as client:
        answered(get(client, "/plain"))
        (resting,) = client._idle._resting.values()
        while resting.is_quiet():
            pass
        answered(get(client, "/plain"))
        assert server.connections == 2


def test_sessions_are_resumed_on_a_new_connection(tmp_path: Path) -> None:
    with HostileServer(tmp_path) as server, HttpClient(patient(server, max_idle_connections=0), AGENT) as client:
        answered(get(client, "/plain"))
        assert list(client._connector.sessions._kept) == ["tricks.test"]
        answered(get(client, "/plain"))
        assert server.resumptions == 1


def test_idle_connections_are_bounded_and_the_oldest_goes_first(tmp_path: Path) -> None:
    with HostileServer(tmp_path) as server, HttpClient(patient(server, max_idle_connections=3), AGENT) as client:
        for name in "abcde":
            answered(get(client, "/plain", f"{name}.test"))
        assert client.idle_connections == 3
        assert [one.origin[0] for one in client._idle._resting.values()] == ["c.test", "d.test", "e.test"]


def test_close_closes_what_rests_and_later_sends_leave_nothing_behind(tmp_path: Path) -> None:
    with HostileServer(tmp_path) as server:
        client = HttpClient(patient(server), AGENT)
        answered(get(client, "/plain"))
        client.close()
        assert client.idle_connections == 0
        answered(get(client, "/plain"))
        assert client.idle_connections == 0


def test_the_keep_alive_header_limits_how_long_a_connection_rests(tmp_path: Path) -> None:
    TRICKS["/~brief"] = lambda x: x.reply(200, b"x", "text/html", "Keep-Alive: timeout=1, max=5")
    try:
        with HostileServer(tmp_path) as server, HttpClient(patient(server), AGENT) as client:
            answered(get(client, "/~brief"))
            answered(get(client, "/~brief"))
            assert server.connections == 2
    finally:
        del TRICKS["/~brief"]


def test_one_send_is_at_most_one_request(tmp_path: Path) -> None:
    with HostileServer(tmp_path) as server, HttpClient(patient(server), AGENT) as client:
        answered(get(client, "/plain"))
        failed(get(client, "/closes-at-once"))
        assert [entry.path for entry in server.seen()] == ["/plain", "/closes-at-once"]


def test_many_threads_share_a_transport(tmp_path: Path) -> None:
    paths = ["/plain", "/gzip", "/chunked", "/gone", "/until-close", "/bad-chunk-size", "/resets", "/stacked"]
    with HostileServer(tmp_path) as server, HttpClient(patient(server), AGENT) as client:
        wrong: list[object] = []

        def work(number: int) -> None:
            for turn in range(12):
                path = paths[(number + turn) % len(paths)]
                answer = get(client, path, f"h{(number + turn) % 3}.test")
                if isinstance(answer, Failure) != (path in ("/bad-chunk-size", "/resets")):
                    wrong.append((path, answer))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []


def test_every_trick_ends_in_an_answer_or_a_failure(server: HostileServer) -> None:
    """No server behaviour raises an exception, and no connection stays open after it."""
    network = server.network(read_timeout=100, total_timeout=150, connect_timeout=150)
    with HttpClient(network, AGENT) as client:
        for path in TRICKS:
            for answer in (head(client, path), get(client, path)):
                assert isinstance(answer, Response | Failure)
        assert client.idle_connections <= 1


# --- work and floods


def test_session_tickets_without_end_are_not_read_without_end(client: HttpClient) -> None:
    """`SSL_read` on the socket itself never returned, and no deadline was looked at."""
    failure = failed(get(client, "/plain", "tickets.test"))
    assert failure.slug == "bad-response"
    assert "TLS messages" in failure.words


def test_a_truncated_gzip_body_is_marked(client: HttpClient) -> None:
    cut, whole = answered(get(client, "/truncated-gzip")), answered(get(client, "/gzip"))
    assert (cut.is_truncated, whole.is_truncated) == (True, False)
    assert b"Cut off" in cut.body


def test_a_flood_of_trailers_after_a_body_is_named(client: HttpClient) -> None:
    failure = failed(get(client, "/trailer-after-body"))
    assert (failure.slug, "trailer" in failure.words) == ("too-large", True)


@pytest.mark.parametrize("path", ["/empty-blocks", "/empty-members"])
def test_compressed_work_without_output_is_too_costly(client: HttpClient, path: str) -> None:
    assert failed(get(client, path)).slug == "too-costly"
