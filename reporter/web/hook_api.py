"""What hooks sent: the log of deliveries, and a delivery once more."""

from __future__ import annotations

from typing import Any

import orjson

from crawler.hooks.delivery import HookSender
from crawler.hooks.outbox import Delivery, Outbox
from reporter.web.problems import Problem
from reporter.web.routing import Answer, Call


def deliveries(call: Call) -> Answer:
    """The last deliveries, newest first. No secret and no address of a hook is among them."""
    found = Outbox(call.face.workspace).deliveries()
    hooks = [{"name": hook.name, "events": list(hook.events)} for hook in call.face.config.hooks]
    return Answer({"hooks": hooks, "deliveries": [_shape(each) for each in reversed(found)]})


def resend(call: Call) -> Answer:
    """Send a delivery once more: the same body, a new signature. How it went is in the log of deliveries."""
    face, number = call.face, _number(call.path["number"])
    outbox = Outbox(face.workspace)
    found = next((each for each in outbox.deliveries() if each.number == number), None)
    if found is None:
        raise Problem(404, "no-such-delivery", f"there is no delivery {number}; GET /api/hooks lists the last ones")
    if all(hook.name != found.hook for hook in face.config.hooks):
        raise Problem(409, "no-such-hook", f"the config has no hook {found.hook} any more")
    revived = outbox.again(number) or found
    HookSender(face.config, face.workspace).begin()
    return Answer({"delivery": _shape(revived)}, status=202)


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 15:
        raise Problem(404, "no-such-delivery", "a delivery is a number")
    return int(text)


def _shape(delivery: Delivery) -> dict[str, Any]:
    return {
        "number": delivery.number,
        "hook": delivery.hook,
        "event": delivery.event,
        "at": delivery.at,
        "state": delivery.state,
        "attempts": delivery.attempts,
        "answer": delivery.answer,
        "done_at": delivery.done_at or None,
        "body": orjson.loads(delivery.body),
    }
