"""Ctrl-Z: the stages are paused by the flag file that `sumi-ripple pause` sets, and go on with `fg`.

The document `suspension` names the flag that was set for that. If the stopped crawl is killed, the next one removes it.
"""

from __future__ import annotations

import orjson

from crawler.observe.processes import observe
from crawler.workspace.door import Workspace

_DOCUMENT = "suspension"


def suspend_stages(workspace: Workspace, stage: str | None) -> str | None:
    """Pause the stages (or one); returns the flag that was set for that, None if they were paused already."""
    if workspace.is_flagged("pause", stage):
        return None
    flag = f"pause.{stage}" if stage else "pause"
    _write(workspace, flag)
    workspace.set_flag("pause", stage)
    _ring_all(workspace)
    return flag


def resume_stages(workspace: Workspace, flag: str | None) -> None:
    """Undo `suspend_stages`."""
    if flag is None:
        return
    workspace.clear_flag("pause", flag.partition(".")[2] or None)
    _write(workspace, None)
    _ring_all(workspace)


def remove_left_suspension(workspace: Workspace) -> None:
    """Remove the pause flag of a crawl that was killed while it was stopped by Ctrl-Z."""
    try:
        found = orjson.loads(workspace.document(_DOCUMENT) or b"{}").get("flag")
    except (ValueError, AttributeError):
        return
    if isinstance(found, str) and found in workspace.flags():
        resume_stages(workspace, found)


def are_requests_paused(workspace: Workspace) -> bool:
    """Has every fetcher reported that it is paused, with no request in flight?"""
    fetchers = observe(workspace).by_stage().get("fetcher", [])
    return all(found.doing == "paused" and not found.facts.get("in_flight") for found in fetchers if found.is_running)


def _write(workspace: Workspace, flag: str | None) -> None:
    workspace.write_document(_DOCUMENT, orjson.dumps({"v": 1, "flag": flag}))


def _ring_all(workspace: Workspace) -> None:
    for name in workspace.bells():
        workspace.ring(name)
