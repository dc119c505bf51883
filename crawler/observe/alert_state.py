"""The alerts that are raised, as the supervisor leaves them in the workspace: for status, dashboard and metrics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

import orjson

from crawler.model.shown_text import plain
from crawler.workspace.door import Workspace

DOCUMENT = "alerts"
_MOST = 50


@dataclass(frozen=True, slots=True)
class Alert:
    name: str  # a slug
    words: str
    since: str  # when it was raised


def read_alerts(workspace: Workspace) -> list[Alert]:
    """The alerts that are raised now, in the order in which they were."""
    try:
        found = orjson.loads(workspace.document(DOCUMENT) or b"")["alerts"]
        return [
            Alert(plain(str(each["name"]), 40), plain(str(each["words"]), 300), plain(str(each["since"]), 40))
            for each in found[:_MOST]
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


def write_alerts(workspace: Workspace, alerts: Iterable[Alert]) -> None:
    workspace.write_document(DOCUMENT, orjson.dumps({"v": 1, "alerts": [asdict(alert) for alert in alerts]}))
