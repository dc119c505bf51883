"""Look-ups against a real name server on loopback: good and bad answers, silence, cancellation."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.model.messages import Failure, Request, Response
from crawler.model.settings import NetworkSettings
from crawler.net.client import HttpClient
from crawler.net.dns import DnsClient, Found, LookupFailure
from crawler.net.hub import BlockingWaiter, Hub
from crawler.net.resolver import AddressResolver, Unresolvable
from tests.crawler.net.dns_server import NameServer, closed_port
from tests.hostile import HostileServer
from tests.in_hub import HubThread

PATIENCE = 60.0  # seconds; a loaded machine needs some, a working look-up milliseconds
AGENT = "SumiRipple/1.0"
TABLE: dict[str, list[str] | str] = {
    "good": ["8.8.8.8", "8.8.4.4", "8.8.8.8"],
    "both": ["8.8.8.8", "2606:4700::1111"],
    "six": ["2606:4700::1111"],
    "private": ["10.0.0.1"],
    "mixed": ["10.0.0.1", "8.8.8.8"],
    "mapped": ["::ffff:127.0.0.1"],
    "nat64": ["64:ff9b::a9fe:a9fe"],
    "sixtofour": ["2002:7f00:1::"],
    "empty": "no data",
    "broken": "server failure",
    "refusing": "refused",
    "silent": "silence",
    "halfsilent": "silence on AAAA",
    "garbled": "garbage",
    "forged": "another number",
    "big": "truncated",
}


@pytest.fixture(scope="module")
def server() -> Iterator[NameServer]:
    with NameServer(**TABLE) as running:
        yield running


@pytest.fixture
def dns(server: NameServer) -> Iterator[DnsClient]:
    client = DnsClient([server.address])
    yield client
    client.close()


def look_up(dns: DnsClient, name: str) -> Found:
    answers: queue.SimpleQueue[Found] = queue.SimpleQueue()
    dns.look_up(name, answers.put)
    return answers.get(timeout=PATIENCE)


def found(dns: DnsClient, name: str) -> set[str]:
    answer = look_up(dns, name)
    assert isinstance(answer, list), answer
    assert len(answer) == len(set(answer))
    return set(answer)


@pytest.mark.parametrize("label", ["good", "both", "six"])
def test_all_addresses_of_a_name_are_found(dns: DnsClient, label: str) -> None:
    assert found(dns, f"{label}.example") == set(TABLE[label])


def test_a_truncated_answer_is_asked_for_again_over_tcp(dns: DnsClient, server: NameServer) -> None:
    assert found(dns, "big.example") == {"8.8.4.4"}
    assert {protocol for name, _, protocol in server.asked if name == "big.example"} == {"udp", "tcp"}


def test_one_address_family_is_enough_when_the_other_gets_no_answer(dns: DnsClient) -> None:
    assert found(dns, "halfsilent.example") == {"8.8.4.4"}


@pytest.mark.parametrize(
    ("name", "failure"),
    [
        ("missing.example", LookupFailure.NO_SUCH_NAME),
        ("empty.example", LookupFailure.NO_SUCH_NAME),
        ("broken.example", LookupFailure.NO_ANSWER),
        ("refusing.example", LookupFailure.NO_ANSWER),
        ("garbled.example", LookupFailure.NO_ANSWER),
        (f"{'a' * 64}.example", LookupFailure.NOT_A_NAME),
        ("a..example", LookupFailure.NOT_A_NAME),
        ("\udc80.example", LookupFailure.NOT_A_NAME),
    ],
)
def test_failed_lookups_are_told_apart(dns: DnsClient, name: str, failure: LookupFailure) -> None:
    assert look_up(dns, name) is failure


def test_a_name_server_that_is_not_there_gives_no_answer() -> None:
    dns = DnsClient([closed_port()])
    assert look_up(dns, "good.example") is LookupFailure.NO_ANSWER
    dns.close()


def name_in_hosts_file() -> tuple[str, str]:
    """An address and its name in /etc/hosts, other than localhost, which c-ares knows without the file."""
    lines = [line.partition("#")[0].split() for line in Path("/etc/hosts").read_text().splitlines()]
    for address, *names in filter(None, lines):
        for name in names:
            if "localhost" not in name:
                return address, name
    pytest.skip("/etc/hosts names no host but localhost")


def test_the_hosts_file_comes_before_the_name_servers(dns: DnsClient, server: NameServer) -> None:
    address, name = name_in_hosts_file()
    assert address in found(dns, name)
    assert name not in server.names()


def test_closing_ends_a_lookup_that_nobody_answers() -> None:
    with NameServer(silent="silence") as server:
        dns = DnsClient([server.address])
        answers: queue.SimpleQueue[Found] = queue.SimpleQueue()
        dns.look_up("silent.example", answers.put)
        assert server.was_asked.acquire(timeout=PATIENCE)
        dns.close()
        assert answers.get(timeout=PATIENCE) is LookupFailure.NO_ANSWER
        assert look_up(dns, "good.example") is LookupFailure.NO_ANSWER  # a closed client asks nobody
        assert set(server.names()) <= {"silent.example"}


# --- with the resolver and the client


def resolve(server: NameServer, name: str, seconds: float = PATIENCE) -> set[str]:
    resolver = AddressResolver(NetworkSettings(), dns=DnsClient([server.address]))
    try:
        return {ip for ip, _ in resolver.addresses(name, 443, BlockingWaiter(), seconds)}
    finally:
        resolver.close()


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("private.example", "address-blocked"),
        ("mapped.example", "address-blocked"),
        ("nat64.example", "address-blocked"),
        ("sixtofour.example", "address-blocked"),
        ("localhost", "address-blocked"),
        ("missing.example", "dns"),
        ("broken.example", "dns-temporary"),
    ],
)
def test_answers_are_checked_wherever_they_come_from(server: NameServer, name: str, slug: str) -> None:
    with pytest.raises(Unresolvable) as caught:
        resolve(server, name)
    assert caught.value.slug == slug


def test_public_addresses_among_private_ones_are_left(server: NameServer) -> None:
    assert resolve(server, "mixed.example") == {"8.8.8.8"}


@pytest.mark.parametrize("label", ["silent", "forged"])
def test_a_lookup_without_an_answer_of_its_own_ends_with_the_time_given(server: NameServer, label: str) -> None:
    with pytest.raises(Unresolvable, match=f"dns-temporary: no name server answered for {label}"):
        resolve(server, f"{label}.example", seconds=0.3)


def test_a_late_answer_replaces_the_timeout_in_the_cache() -> None:
    may_answer = threading.Event()

    class Late:
        def look_up(self, name: str, done: object) -> None:
            def answer() -> None:
                assert may_answer.wait(PATIENCE)
                done(["8.8.8.8"])  # type: ignore[operator]

            self.thread = threading.Thread(target=answer)
            self.thread.start()

        def close(self) -> None:
            pass

    late = Late()
    resolver = AddressResolver(NetworkSettings(), dns=late)
    with pytest.raises(Unresolvable, match="dns-temporary"):
        resolver.addresses("late.example", 443, BlockingWaiter(), 0.01)
    may_answer.set()
    late.thread.join()
    assert resolver.known("late.example", 443) == [("8.8.8.8", 443)]


def test_a_silent_name_server_ends_its_request_in_time_and_holds_up_no_other(
    server: NameServer, tmp_path: Path
) -> None:
    """In one hub: the page is fetched while the look-up waits, and the look-up ends by connect-timeout."""
    with HostileServer(tmp_path) as pages, HubThread() as running:
        network = pages.network(
            resolve=(("*.test", f"127.0.0.1:{pages.port}"),),
            connect_timeout=2_000,
            read_timeout=20_000,
            total_timeout=20_000,
        )
        resolver = AddressResolver(network, dns=DnsClient([server.address]))
        order: list[str] = []

        def ask(client: HttpClient, host: str) -> Response | Failure:
            answer = client.send(Request("HEAD", f"https://{host}/plain"))
            order.append(host)
            return answer

        with HttpClient(network, AGENT, resolver=resolver, waiter=running.hub) as client:
            silent, page = running.all_of(
                [lambda: ask(client, "silent.example"), lambda: ask(client, "tricks.test")],
            )
        assert isinstance(page, Response)
        assert (silent.slug, order) == ("dns-temporary", ["tricks.test", "silent.example"])


def test_closing_the_client_ends_its_lookups() -> None:
    with NameServer(silent="silence") as server, HubThread() as running:
        resolver = AddressResolver(NetworkSettings(), dns=DnsClient([server.address]))
        client = HttpClient(NetworkSettings(), AGENT, resolver=resolver, waiter=running.hub)

        def close_when_asked() -> None:
            assert server.was_asked.acquire(timeout=PATIENCE)
            client.close()

        closing = threading.Thread(target=close_when_asked)
        closing.start()
        (answer,) = running.all_of([lambda: client.send(Request("HEAD", "https://silent.example/"))])
        closing.join()
        assert isinstance(answer, Failure)
        assert answer.slug == "dns-temporary"


def test_a_callback_after_the_hub_was_closed_touches_nothing() -> None:
    """Its descriptors may belong to other files by then."""
    hub = Hub()
    later: queue.SimpleQueue[object] = queue.SimpleQueue()
    with HubThread(hub) as running:

        def give_up() -> str:
            with pytest.raises(TimeoutError):
                hub.wait_for_callback(later.put, 0.01)
            return "gave up"

        assert running.all_of([give_up]) == ["gave up"]
    done = later.get()
    done("too late")  # type: ignore[operator]
    assert not hub._called_back
