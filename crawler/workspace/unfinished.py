"""The note that an import into an engine has begun: it is there until the import has taken effect as a whole.

Invariant: while the note is there, nothing of what is imported is in the workspace.
"""

from __future__ import annotations

import orjson

from crawler.workspace.door import Workspace, WorkspaceError

NOTE = "import"  # the document


def note_of(folder: str, engine: str) -> bytes:
    """The document, for an import of this folder into this engine."""
    return orjson.dumps({"v": 1, "from": folder, "into": engine})


def unfinished_import(workspace: Workspace, *, is_alone: bool = False) -> str | None:
    """What, where, and what to do; None: no import has begun here that did not end.

    `is_alone`: this process has the role that an import has while it is under way.
    """
    content = workspace.document(NOTE)
    if content is None:
        return None
    try:
        note = orjson.loads(content)
        words = f"the import of {note['from']} into the engine {note['into']}"
    except (ValueError, KeyError, TypeError):
        words = "an import into the engine"
    if not is_alone and workspace.is_role_taken("supervisor"):
        return f"{words} is under way; wait until it has ended"
    return (
        f"{words} was cut off; finish it with: sumi-ripple engine import CONFIG, or give it up with: "
        "sumi-ripple reset CONFIG"
    )


def require_no_unfinished_import(workspace: Workspace, *, is_alone: bool = False) -> None:
    """Raise WorkspaceError if what begins here would be in the way of an import."""
    found = unfinished_import(workspace, is_alone=is_alone)
    if found is not None:
        raise WorkspaceError(found)
