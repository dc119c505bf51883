"""Host, origin and the headers: what must hold before a handler is reached."""

from __future__ import annotations

import json
import socket

import pytest

from reporter.web.face import Binding
from reporter.web.guard import require_own_origin, session_cookie
from reporter.web.problems import Problem
from tests.reporter.web.serving import Served


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example", ""])
def test_a_foreign_host_reaches_nothing(face: Served, host: str) -> None:
    for path in ("/", "/health", "/api/live", "/nowhere"):
        answer = face.get(path, headers={"Host": host}, token=None)
        assert answer.status_code == 421, "DNS rebinding"
        assert answer.json()["type"] == "/problems/wrong-host"


@pytest.mark.parametrize("path", ["/", "/health", "/api/live", "/nowhere", "/static/none.js"])
def test_every_answer_has_a_strict_policy_and_is_not_sniffed_or_framed(face: Served, path: str) -> None:
    headers = face.get(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "script-src 'self'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize(
    ("headers", "by_cookie", "passes"),
    [
        ({"sec-fetch-site": "same-origin"}, True, True),
        ({"sec-fetch-site": "same-site"}, True, False),
        ({"sec-fetch-site": "cross-site"}, True, False),
        ({"sec-fetch-site": "none"}, True, False),
        ({"sec-fetch-site": "cross-site"}, False, False),
        ({"origin": "http://127.0.0.1:8700"}, True, True),
        ({"origin": "https://127.0.0.1:8700"}, True, False),
        ({"origin": "http://127.0.0.1:8701"}, True, False),
        ({"origin": "null"}, True, False),
        ({}, True, False),
        ({}, False, True),
    ],
)
def test_a_change_must_come_from_a_page_of_this_server(headers: dict[str, str], by_cookie: bool, passes: bool) -> None:
    binding = Binding(8700, frozenset({"127.0.0.1:8700"}))
    try:
        require_own_origin(binding, {"host": "127.0.0.1:8700", **headers}, by_cookie=by_cookie)
    except Problem as problem:
        assert not passes and problem.status == 403
    else:
        assert passes


def test_a_foreign_page_cannot_use_the_owners_cookie(face: Served) -> None:
    cookie = face.entered()
    foreign = {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}
    assert face.post("/api/auth/logout", cookie=cookie, headers=foreign).status_code == 403
    assert face.get("/api/live", cookie=cookie).status_code == 200


def test_the_cookie_is_strict_names_the_port_and_is_secure_under_tls() -> None:
    plain, secure = (Binding(8700, frozenset(), is_tls) for is_tls in (False, True))
    assert session_cookie(plain, "x") == "sumi-session-8700=x; Path=/; Max-Age=86400; HttpOnly; SameSite=Strict"
    assert session_cookie(secure, "x").endswith("SameSite=Strict; Secure")
    assert "Max-Age=0" in session_cookie(plain, None)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"no HTTP at all\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: HERE\r\nHost: evil.example\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: HERE\r\nX: \x00\r\n\r\n", 400),
        (b"POST /api/auth/login HTTP/1.1\r\nHost: HERE\r\nContent-Length: 99999999999\r\n\r\n", 413),
        (b"POST /api/auth/login HTTP/1.1\r\nHost: HERE\r\nContent-Length: 9\r\n\r\n{", 408),
    ],
)
def test_bytes_that_are_no_call_get_problem_details_and_the_connection_ends(
    face: Served, monkeypatch: pytest.MonkeyPatch, sent: bytes, status: int
) -> None:
    """A body that is announced as too large is not waited for, and one that does not come is not for long."""
    monkeypatch.setattr("reporter.web.web_app.BODY_SECONDS", 0.05)
    with socket.create_connection(("127.0.0.1", face.face.binding.port), timeout=30) as connection:
        connection.sendall(sent.replace(b"HERE", f"127.0.0.1:{face.face.binding.port}".encode()))
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode()) and b"application/problem+json" in head
    assert json.loads(body)["status"] == status
