"""The first step of a command that crawls, taken before the command line is loaded: that alone takes a quarter of the
time until the stages run, and the process that stages are forked from can import their modules meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

_CRAWLING = ("crawl", "demo")
_NOT_CRAWLING = ("-h", "--help", "--dry-run", "--stats", "--export-summary", "--unified")


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
