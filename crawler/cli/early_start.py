"""The first steps of a command, taken before the command line is loaded.

Loading it takes a quarter of the time until the stages of a crawl run, and the process that they are forked from can
import their modules meanwhile.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_CRAWLING = ("crawl", "demo")
_NOT_CRAWLING = ("-h", "--help", "--dry-run", "--stats", "--export-summary", "--unified")


def open_standard_streams() -> None:
    """Put the null device where the caller has closed a standard stream.

    Otherwise a lock, a pipe or a spool would get its number, and whatever is printed would go there.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")


@contextmanager
def ctrl_c_ends_at_once() -> Iterator[None]:
    """While modules are imported there is nothing to save, and a KeyboardInterrupt in the middle of one would show as a
    traceback, or worse: in the import of orjson it is a segmentation fault. What was started by then ends by itself.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # or else it is ignored: a job in the background
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is not before:
            signal.signal(signal.SIGINT, before)


def begin_early(arguments: Sequence[str]) -> None:
    """Begin to start the stages if these arguments look like a crawl; the command itself looks again."""
    if looks_like_a_crawl(arguments):
        begin_to_start()


def begin_to_start() -> None:
    """Let the stages' modules be imported while the config is read."""
    from crawler.supervise.fork_server import start_fork_server

    start_fork_server()


def looks_like_a_crawl(arguments: Sequence[str]) -> bool:
    """Will these arguments start stages? A guess, which nothing depends on: a fork server that nobody needs ends with
    the command.
    """
    first = arguments[0] if arguments else ""
    return (first in _CRAWLING or first.endswith(".toml")) and not any(word in _NOT_CRAWLING for word in arguments)
