"""Imported first by the fork server: it removes the folder of its socket, if the supervisor cannot.

The folder (`pymp-…` among the temporary files) is the supervisor's, which removes it at its end. One that is killed has
no end; but the fork server ends then, by itself.
"""

from __future__ import annotations

import atexit
import os
import sys
from shutil import rmtree

from crawler.supervise.fork_server import FOLDER

_folder = os.environ.pop(FOLDER, None)


def _remove() -> None:
    # A fork server that an error ended gets a successor, with a socket in the same folder.
    if _folder is not None and not hasattr(sys, "last_type"):
        rmtree(_folder, ignore_errors=True)


atexit.register(_remove)
