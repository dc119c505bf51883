"""Sends what the outbox holds: a POST with requests, or an e-mail to a local command.

The address of a hook is checked as that of a page is, and the connection goes to the address that was checked. No
redirect is followed, no proxy and no netrc of the environment is used, retries and times are bounded.

What it takes to send is imported inside of functions: every crawl has a sender, and most have no hooks.
"""

from __future__ import annotations

import subprocess
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from crawler.hooks.hook_message import SIGNATURE, mail_of, signature
from crawler.hooks.outbox import Delivery, Outbox
from crawler.model.settings import Config, HookRule, NetworkSettings
from crawler.workspace.clock import now_text
from crawler.workspace.door import Held, RoleTaken, Workspace

if TYPE_CHECKING:
    from crawler.net.addresses import Endpoint

RETRIES = 3
SECONDS = 10.0  # for each step of an attempt
_BACKOFF = 0.5  # seconds before the second retry; each further one waits twice as long
_TRY_AGAIN = (429, 500, 502, 503, 504)
_MOST_STARTS = 5  # starts of a crawl after which a delivery is given up
_PATIENCE = 2 * SECONDS  # for another process that sends: it looks for more after each delivery
SENDER = "hook-sender"  # the role of the process that sends


class HookSender:
    """`tell` writes an event down and sends it in a thread; `finish` waits for that, for a bounded time."""

    def __init__(self, config: Config, workspace: Workspace) -> None:
        self.config = config
        self._workspace = workspace
        self._outbox = Outbox(workspace)
        self._thread: threading.Thread | None = None

    def tell(self, event: str, facts: dict[str, Any]) -> None:
        if self.config.hooks and self._outbox.put(self.config.hooks, event, facts):
            self.begin()

    def begin(self) -> None:
        """Send what is pending, of earlier starts too."""
        if not self.config.hooks or (self._thread is not None and self._thread.is_alive()):
            return
        self._thread = threading.Thread(target=self.send_pending, name="hooks", daemon=True)
        self._thread.start()

    def finish(self, seconds: float = 2 * SECONDS) -> None:
        """What is not sent by then waits for the next start."""
        if not self.config.hooks:
            return
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self._thread is not None:
                self._thread.join(max(0.0, until - time.monotonic()))
            if not any(each.state == "pending" for each in self._outbox.deliveries()):
                return
            if self._thread is None or not self._thread.is_alive():
                before = [each.attempts for each in self._outbox.deliveries()]
                self.send_pending()
                if before == [each.attempts for each in self._outbox.deliveries()]:
                    return

    def send_pending(self) -> list[Delivery]:
        """Every pending delivery once (with its retries), in order; returns them as they are then.

        One process sends at a time: the supervisor, the web face and a command may all find the same one pending.
        """
        turn = self._turn()
        if turn is None:
            return []
        try:
            return self._send_all()
        finally:
            turn.release()

    def _turn(self) -> Held | None:
        """The right to send; None: another process has it, and finds what is pending, too."""
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._workspace.take_role(SENDER)
            except RoleTaken:
                if time.monotonic() > until:
                    return None

    def _send_all(self) -> list[Delivery]:
        hooks = {hook.name: hook for hook in self.config.hooks}
        done: list[Delivery] = []
        while True:
            known = {each.number for each in done}
            pending = [
                each for each in self._outbox.deliveries() if each.state == "pending" and each.number not in known
            ]
            if not pending:
                return done
            sent = self._send(pending[0], hooks.get(pending[0].hook))
            self._outbox.note(sent)
            done.append(sent)

    def _send(self, delivery: Delivery, hook: HookRule | None) -> Delivery:
        if hook is None:
            return replace(delivery, state="failed", answer="the config has no such hook any more", done_at=now_text())
        try:
            answer = send_mail(hook, delivery) if hook.command else post(hook, delivery, self.config.network)
            is_done = answer.startswith(("2", "sent"))
        except OSError as problem:  # those of requests are, too
            answer, is_done = f"{type(problem).__name__}: {problem}"[:300], False
        attempts = delivery.attempts + 1
        is_refused = answer.startswith(("3", "4")) and answer not in map(str, _TRY_AGAIN)
        is_over = is_done or attempts >= _MOST_STARTS or is_refused
        state = "delivered" if is_done else "failed" if is_over else "pending"
        return replace(delivery, state=state, attempts=attempts, answer=answer, done_at=now_text() if is_over else "")


def post(hook: HookRule, delivery: Delivery, network: NetworkSettings) -> str:
    """The status code of the answer. Raises OSError."""
    import requests

    from crawler.net.resolver import Unresolvable

    body = delivery.body.encode()
    headers = {"Content-Type": "application/json", "User-Agent": "SumiRipple-Hook/1"}
    headers |= {"Sumi-Event": delivery.event, "Sumi-Delivery": str(delivery.number)}
    if hook.secret:
        headers[SIGNATURE] = signature(hook.secret, int(time.time()), body)
    try:
        endpoint = checked_endpoint(hook.url, network)
    except Unresolvable as problem:
        raise OSError(str(problem)) from None
    with requests.Session() as session:
        session.trust_env = False
        adapter = _adapter(endpoint, network)
        session.mount("https://", adapter)
        session.mount("http://", adapter)
        answer = session.post(
            hook.url, data=body, headers=headers, timeout=(SECONDS, SECONDS), allow_redirects=False, stream=True
        )
        answer.close()
    return str(answer.status_code)


def checked_endpoint(url: str, network: NetworkSettings) -> Endpoint:
    """The address to connect to: public, unless the config lets others in. Raises Unresolvable."""
    from crawler.net.hub import BlockingWaiter
    from crawler.net.resolver import AddressResolver

    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    resolver = AddressResolver(network)
    try:
        return resolver.addresses(parts.hostname or "", port, BlockingWaiter(), SECONDS)[0]
    finally:
        resolver.close()


def _adapter(endpoint: Endpoint, network: NetworkSettings) -> Any:
    """An adapter whose connections go to this endpoint, whatever the name says by then."""
    from requests.adapters import HTTPAdapter
    from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
    from urllib3.connection import HTTPConnection, HTTPSConnection
    from urllib3.util import Retry
    from urllib3.util.connection import create_connection

    from crawler.net.tls import tls_context

    class Pinned(HTTPConnection):
        def _new_conn(self) -> Any:
            return create_connection(endpoint, SECONDS, socket_options=self.socket_options)

    class PinnedTls(HTTPSConnection):
        def _new_conn(self) -> Any:
            return create_connection(endpoint, SECONDS, socket_options=self.socket_options)

    class Pool(HTTPConnectionPool):
        ConnectionCls = Pinned

    class TlsPool(HTTPSConnectionPool):
        ConnectionCls = PinnedTls

    retry = Retry(
        total=RETRIES,
        redirect=0,
        status_forcelist=_TRY_AGAIN,
        allowed_methods=frozenset({"POST"}),
        backoff_factor=_BACKOFF,
        respect_retry_after_header=False,  # its time would have no bound
        raise_on_status=False,
    )
    adapter = HTTPAdapter(max_retries=retry)
    adapter.init_poolmanager(1, 1, ssl_context=tls_context(network))
    adapter.poolmanager.pool_classes_by_scheme = {"http": Pool, "https": TlsPool}
    return adapter


def send_mail(hook: HookRule, delivery: Delivery) -> str:
    """An e-mail on the input of a local command. Raises OSError."""
    mail = mail_of(delivery.body.encode(), hook.to, hook.sender)
    try:
        done = subprocess.run(hook.command, input=mail, capture_output=True, timeout=3 * SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise OSError(f"{hook.command[0]} did not end within {3 * SECONDS:.0f} seconds") from None
    if done.returncode:
        raise OSError(
            f"{hook.command[0]} ended with code {done.returncode}: {done.stderr[-200:].decode(errors='replace')}"
        )
    return f"sent by {hook.command[0]}"
