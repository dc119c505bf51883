"""The process that stages are forked from, and its start.

It has imported the stages' modules and does nothing else: it has one thread, no locks held, no sockets or databases
open. So the modules are imported once instead of four times, and while the command reads its config.

This module imports no other one of the project: a command that will start stages begins with it, before it has even
loaded its options.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker, util

_MODULES = [
    "crawler.supervise.forked_folder",  # first: the supervisor may be killed while the others are imported
    *("crawler.supervise.stage_process", "crawler.fetch.fetcher", "crawler.schedule.scheduler", "ingest.loop"),
    *("crawler.workspace.files.file_workspace", "ingest.sqlite.sqlite_engine"),  # chosen by the config, nearly always
    "crawler.supervise.forked_memory",  # last
]
# Blocked in the fork server, and in a stage until it has left the terminal's foreground.
BLOCKED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
_LONGEST_TEMPORARY = 75  # bytes; "/pymp-12345678/listener-12345678" is added to it, and the path of a socket has 107
FOLDER = "SUMI_RIPPLE_FORK_FOLDER"  # a variable of the fork server's environment: the folder of its socket


def start_fork_server() -> None:
    """Start the fork server where it does not run, and return before it has imported its modules.

    `start_stage` does this too. It takes a third of a second, so a command that will start stages begins with it.
    """
    multiprocessing.set_forkserver_preload(_MODULES)
    resource_tracker.ensure_running()  # not below: it lets SIGINT and SIGTERM through once its process has started
    if multiprocessing.parent_process() is None:  # else the folder is the parent's, which may go on
        os.environ[FOLDER] = _folder_of_socket()
    with signals_blocked():
        forkserver.ensure_running()
    os.environ.pop(FOLDER, None)


def _folder_of_socket() -> str:
    """A new folder among the temporary files; in `/tmp` where the usual place makes a socket's path too long."""
    usual = tempfile.gettempdir()
    if len(os.fsencode(usual)) > _LONGEST_TEMPORARY:
        tempfile.tempdir = "/tmp"
    try:
        return util.get_temp_dir()
    finally:
        tempfile.tempdir = usual


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Processes that are started in here begin with these signals blocked.

    Ctrl-C and the end of a terminal reach every process in its foreground. The supervisor alone passes them on, once.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
