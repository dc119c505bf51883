"""`python -m tests.pipeline.dying MOMENT NTH WORDS…`: a command that kills itself before it tells the engine something.

MOMENT is a regular expression; the command dies just before the NTH statement in which it is found.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from typing import Any

import psycopg

from tests.crawler.cli.calling import called


def die_before(moment: str, nth: int) -> None:
    left = [nth]

    def watch(kind: Any, name: str) -> None:
        plain = getattr(kind, name)

        def watched(cursor: Any, statement: Any, *arguments: Any, **more: Any) -> Any:
            text = statement if isinstance(statement, str) else str(statement)
            if re.search(moment, text):
                left[0] -= 1
                if not left[0]:
                    os.kill(os.getpid(), signal.SIGKILL)
            return plain(cursor, statement, *arguments, **more)

        setattr(kind, name, watched)

    watch(psycopg.Cursor, "execute")
    watch(psycopg.Cursor, "copy")
    watch(psycopg.ServerCursor, "execute")


if __name__ == "__main__":
    die_before(sys.argv[1], int(sys.argv[2]))
    sys.exit(called(*sys.argv[3:]))
