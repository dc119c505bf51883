"""Orders: what people ask the crawl to do. They are left in the log of orders, and the scheduler takes them up."""

from __future__ import annotations

import secrets
import time
from typing import Annotated

import msgspec

from crawler.database.reader import open_map
from crawler.model.errors import sentence
from crawler.model.records import Order, dump
from crawler.model.urls import UrlError, domain_of, normalize, wire_of
from crawler.pace.gate_record import RESETTABLE
from crawler.rules.lists import Classifier, DomainClass
from crawler.workspace.clock import now_text
from crawler.workspace.door import RoleTaken
from reporter.queries.domain_block import block_of
from reporter.queries.frontier_list import waiting_domains
from reporter.web.face import Face
from reporter.web.map_api import host
from reporter.web.problems import Problem
from reporter.web.routing import Answer, Call

_SEGMENT = 1024 * 1024  # bytes
_PATIENCE = 5.0  # seconds to wait for another writer of orders
_REMEDIES = {
    "request-limit": "its request budget ran out; a larger one opens it again",
    "crawl-delay": "robots.txt asks for a longer pause than max-crawl-delay allows",
}
_Url = Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]


class Pages(msgspec.Struct, forbid_unknown_fields=True):
    urls: Annotated[tuple[_Url, ...], msgspec.Meta(min_length=1, max_length=1000)]


def add(call: Call) -> Answer:
    return _ordered(call, "add")


def seed(call: Call) -> Answer:
    return _ordered(call, "seed")


def _ordered(call: Call, action: str) -> Answer:
    """Pages of quality domains are taken; the answer says why others are not."""
    accepted: list[str] = []
    refused: list[dict[str, str]] = []
    classifier, tracking = Classifier(call.face.config), call.face.config.crawler.tracking_parameters
    for url in call.body.urls:
        try:
            wire, domain = wire_of(url), domain_of(normalize(url, tracking))
        except UrlError as problem:
            refused.append({"url": url, "why": sentence(problem)})
            continue
        klass = classifier.classify(domain).klass
        if klass is DomainClass.QUALITY:
            accepted.append(wire)
        else:
            refused.append({"url": url, "why": f"{domain} is {klass}: only links lead there; accept the domain first"})
    if not accepted:
        raise Problem(409, "nothing-to-visit", refused[0]["why"])
    order = Order(secrets.token_hex(8), now_text(), action, tuple(dict.fromkeys(accepted)), call.visitor.name)
    leave_order(call.face, order)
    return Answer({"id": order.id, "accepted": list(order.wires), "refused": refused}, status=202)


def leave_order(face: Face, order: Order) -> None:
    """Append an order, durably, and wake the scheduler. Raises Problem."""
    workspace = face.workspace
    workspace.prepare()
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            role = workspace.take_role("orders")
            break
        except RoleTaken:
            if time.monotonic() > deadline:
                raise Problem(503, "busy", "another order is being written", retry_after=5) from None
    try:
        writer = workspace.orders.writer(segment_bytes=_SEGMENT, durable=True)
        try:
            writer.append(dump(order))
            writer.sync()
        finally:
            writer.close()
    finally:
        role.release()
    workspace.ring("scheduler")


def recover(call: Call) -> Answer:
    """Jobs of a fetcher that died are free at once and taken over by another one; this wakes those that are there."""
    workspace = call.face.workspace
    if not workspace.exists():
        raise Problem(409, "nothing-crawled", "there is no workspace yet; nothing has been crawled")
    fetchers = [name for name in workspace.roles() if name.startswith("fetcher-")]
    dead = [name for name in fetchers if not workspace.is_role_taken(name)]
    for name in workspace.bells():
        workspace.ring(name)
    waiting = workspace.waiting_job_bytes()
    return Answer({"domains": len(waiting), "fetchers": len(fetchers) - len(dead), "ended_fetchers": dead})


# -- a domain that is left alone ---------------------------------------------------------------------------------


def reset_domain(call: Call) -> Answer:
    """Ask a domain again that was closed for the run after a 429, say, or whose circuit breaker is open."""
    name = host(call.path["domain"])
    with open_map(call.face.database) as reader:
        block = block_of(reader, name)
    if block is None:
        raise Problem(404, "not-on-map", f"no domain {name} is on the map")
    if block.closed is not None and block.closed not in RESETTABLE:
        raise Problem(409, "config-closed", f"{name} is closed by the config: {_REMEDIES[block.closed]}")
    if block.closed is None and not block.is_breaker_open:
        raise Problem(409, "not-closed", f"{name} is neither closed in the newest run nor is its circuit breaker open")
    order = Order(secrets.token_hex(8), now_text(), "reset", (f"https://{name}/",), call.visitor.name)
    leave_order(call.face, order)
    return Answer({"id": order.id, "domain": name, "closed": block.closed, "breaker": block.breaker}, status=202)


# -- clearing the frontier ---------------------------------------------------------------------------------------


class ClearQuery(msgspec.Struct, forbid_unknown_fields=True):
    token: Annotated[str, msgspec.Meta(max_length=100)] = ""


def clear_preview(call: Call) -> Answer:
    """What would be taken off the frontier now, and the token that the deletion must bring within ten minutes."""
    with open_map(call.face.database) as reader:
        domains = waiting_domains(reader)
    waiting = call.face.live.newest()["figures"]["waiting"]
    token = call.face.previews.make(call.visitor.key, "clear frontier")
    return Answer({"token": token, "pages": waiting, "domains": domains})


def clear(call: Call) -> Answer:
    """Every domain with waiting pages is closed for the run; what is on the wire is finished."""
    if not call.face.previews.take(call.query.token, call.visitor.key, "clear frontier"):
        raise Problem(409, "no-preview", "see first what would go: GET /api/frontier/preview gives the token")
    order = Order(secrets.token_hex(8), now_text(), "clear", who=call.visitor.name)
    leave_order(call.face, order)
    return Answer({"id": order.id}, status=202)
