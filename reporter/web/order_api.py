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
from crawler.rules.lists import Classifier, DomainClass
from crawler.workspace.clock import now_text
from crawler.workspace.door import RoleTaken
from reporter.queries.frontier_list import waiting_domains
from reporter.web.face import Face
from reporter.web.problems import Problem
from reporter.web.routing import Answer, Call

_SEGMENT = 1024 * 1024  # bytes
_PATIENCE = 5.0  # seconds to wait for another writer of orders
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
