"""Control of a crawl by the same flag files and orders as the commands: pause, resume, stop, reload. And the log."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from crawler.workspace.door import STAGES
from crawler.workspace.reloads import order_reload
from reporter.web.problems import Problem
from reporter.web.routing import Answer, Call


class Control(msgspec.Struct, forbid_unknown_fields=True):
    action: Literal["pause", "resume", "stop", "reload"]
    stage: Literal["scheduler", "fetcher", "ingest"] | None = None


def control(call: Call) -> Answer:
    """Ask the stages; whether they heed it is seen in the live figures."""
    workspace, wanted = call.face.workspace, call.body
    if not workspace.exists():
        raise Problem(409, "nothing-crawled", "there is no workspace yet; nothing has been crawled")
    is_running = workspace.is_role_taken("supervisor") or any(workspace.is_role_taken(stage) for stage in STAGES)
    if wanted.action == "reload":
        if wanted.stage:
            raise Problem(422, "one-stage", "the config is read again by all stages; leave stage out")
        if not is_running:
            raise Problem(409, "nothing-runs", "nothing is running; the next crawl reads the config anyway")
        order_reload(workspace)
    elif wanted.action == "resume":
        for stage in (wanted.stage,) if wanted.stage else (None, *STAGES):
            for word in ("pause", "stop"):
                workspace.clear_flag(word, stage)
    elif wanted.action == "stop" and not is_running:
        raise Problem(409, "nothing-runs", "nothing is running")
    else:
        workspace.set_flag(wanted.action, wanted.stage)
    for name in workspace.bells():
        workspace.ring(name)
    return Answer({"action": wanted.action, "stage": wanted.stage, "flags": workspace.flags()})


class LogQuery(msgspec.Struct, forbid_unknown_fields=True):
    before: Annotated[int, msgspec.Meta(ge=0, le=2**62)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 50


def write_log(call: Call) -> Answer:
    """What was changed through the web face, by whom; the newest first."""
    entries, following = call.face.log.newest(call.query.limit, call.query.before)
    return Answer({"entries": entries, "next": following})
