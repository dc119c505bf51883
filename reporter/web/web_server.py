"""uvicorn around the app: binds, prints the way in, serves until a signal, and lets streams end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import uvicorn

from crawler.model.errors import SumiError, UsageError
from crawler.model.settings import Config
from reporter.web.face import Binding, Face, Tools
from reporter.web.warming import Warmer
from reporter.web.web_app import make_app
from reporter.web.wire_protocol import WireProtocol

GRACE = 3  # seconds for calls under way and streams when the server ends
_WAITING = 512  # connections that wait to be accepted


class CannotServe(SumiError):
    """The address cannot be bound."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where to listen. `names`: further host names under which people reach the server, with or without its port.

    `is_behind_tls`: a proxy in front speaks HTTPS for it.
    """

    host: str = "127.0.0.1"
    port: int = 8700
    names: tuple[str, ...] = ()
    is_remote_allowed: bool = False
    certificate: Path | None = None
    key: Path | None = None
    is_behind_tls: bool = False


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def serve(config: Config, place: Place, version: str, tools: Tools, say: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM. Raises UsageError, CannotServe and RoleTaken."""
    _require_safe(place)
    settings = uvicorn.Config(
        app=_not_ready,
        host=place.host,
        port=place.port,
        log_config=None,
        log_level="error",  # its warnings are about what strangers send
        access_log=False,
        server_header=False,
        proxy_headers=False,
        http=WireProtocol,
        ws="none",
        lifespan="off",
        backlog=_WAITING,
        timeout_graceful_shutdown=GRACE,
        ssl_certfile=place.certificate,
        ssl_keyfile=place.key,
    )
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # its error about a taken port; ours follows
    try:
        sock = settings.bind_socket()
    except SystemExit:
        raise CannotServe(
            f"cannot listen on {place.host} port {place.port}: it is taken, or not yours; give another one with --port"
        ) from None
    finally:
        logging.getLogger("uvicorn").setLevel(logging.ERROR)
    try:
        sock.listen(_WAITING)  # who opens the link at once is kept waiting until the server takes over
        port = int(sock.getsockname()[1])
        face = Face(config, _binding(place, port), version, tools)
        if not is_loopback(place.host) and not face.accounts.all():
            raise UsageError(f"nobody could sign in from elsewhere: make an account first: {_user_command(config)}")
        face.workspace.prepare()
        role = face.workspace.take_role("web")
        warmer = Warmer(face)
        try:
            settings.app = make_app(face)
            _say_where(face, place, port, say)
            warmer.start()
            _run(settings, [sock])
        finally:
            warmer.close()
            role.release()
    finally:
        sock.close()


def _run(settings: uvicorn.Config, sockets: Sequence[object]) -> None:
    server = uvicorn.Server(settings)
    try:
        server.run(sockets=list(sockets))  # type: ignore[arg-type]  # the house names sockets only in its own rooms
    except KeyboardInterrupt:
        pass


async def _not_ready(scope: object, receive: object, send: object) -> None:
    raise RuntimeError("the app is set before the server starts")


def _require_safe(place: Place) -> None:
    if (place.certificate is None) != (place.key is None):
        raise UsageError("TLS needs both: give --tls-certificate and --tls-key together")
    for path in (place.certificate, place.key):
        if path is not None and not path.is_file():
            raise UsageError(f"there is no file {path}")
    if not is_loopback(place.host) and not place.is_remote_allowed:
        raise UsageError(
            f"{place.host} can be reached from other machines; if that is meant, add --allow-remote (and use TLS, here"
            " or in front)"
        )


def _binding(place: Place, port: int) -> Binding:
    names = {place.host, *place.names}
    if is_loopback(place.host):
        names |= {"localhost", "127.0.0.1", "::1"}
    bare = {f"[{name}]" if ":" in name else name.lower() for name in names}
    usual = 443 if place.certificate else 80
    hosts = {f"{name}:{port}" for name in bare} | {name.lower() for name in place.names}
    if port == usual or not is_loopback(place.host):
        hosts |= bare
    is_tls = place.certificate is not None or place.is_behind_tls
    return Binding(port, frozenset(hosts), is_tls, is_loopback(place.host))


def _say_where(face: Face, place: Place, port: int, say: Callable[[str], None]) -> None:
    host = f"[{place.host}]" if ":" in place.host else place.host
    base = f"{'https' if place.certificate else 'http'}://{host}:{port}"
    if face.binding.is_loopback:
        say(f"The web face is at {base}/. Open this link to sign in; it works once, for a quarter of an hour:")
        say(f"  {base}/enter?token={face.accounts.add_link()}")
    else:
        say(f"The web face is at {base}/. Sign in with an account.")
    say("Ctrl-C ends it; a crawl goes on by itself.")


def _user_command(config: Config) -> str:
    return f"sumi-ripple user add NAME {config.source or ''}".rstrip()
