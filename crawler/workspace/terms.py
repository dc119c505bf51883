"""The terms of a run: the settings that released jobs are under, as the document `terms` names them.

The scheduler writes it once it has recorded the settings with the run and has dealt with the windows that are out. So
where settings have changed, fetchers that start only then never send a request under settings that are not recorded.
"""

from __future__ import annotations

import orjson

from crawler.workspace.door import Workspace

_DOCUMENT = "terms"


def read_terms(workspace: Workspace) -> str | None:
    """The hash of the settings in force (`Config.config_hash`); None: they are just changing, or were never noted."""
    try:
        found = orjson.loads(workspace.document(_DOCUMENT) or b"{}").get("config")
    except (ValueError, AttributeError):
        return None
    return found if isinstance(found, str) and found else None


def write_terms(workspace: Workspace, config_hash: str | None) -> None:
    """Note the settings in force; None: others are about to be recorded."""
    workspace.write_document(_DOCUMENT, orjson.dumps({"v": 1, "config": config_hash or ""}))
