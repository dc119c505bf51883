"""PURE. What to do where there is no connection to the engine."""

from __future__ import annotations

_ADVICE = "; is the server running there, and is [engine] url right?"
_LOOK = " To look: sumi-ripple engine check CONFIG"


def advised(text: str, *, names_check: bool = True) -> str:
    """The text of an error, with what to do, if it says that the engine cannot be reached and nothing more.

    `names_check`: name the command that looks, too. It says the same itself.
    """
    if not text.startswith("cannot reach the engine") or "; " in text:
        return text
    return f"{text}{_ADVICE}{_LOOK if names_check else ''}"
