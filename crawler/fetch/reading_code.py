"""A print of the code that reads pages: what was noted by other code is not believed.

It is taken of the files themselves, so nobody has to remember a number when the code changes. And when they are
imported: a fetcher may be started while a newer version is being installed over the one that it was forked with.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from pathlib import Path

from crawler.visit import scanner

# Every module of the project that `crawler.visit.html` comes to, and those that decide what is noted. A test holds the
# list.
MODULES = (
    *("crawler.model.content_types", "crawler.model.link_context", "crawler.model.map_place"),
    *("crawler.model.page_claims", "crawler.model.pagination", "crawler.model.settings", "crawler.model.urls"),
    *("crawler.model.whatwg", "crawler.visit.clean_text", "crawler.visit.encoding", "crawler.visit.html"),
    *("crawler.visit.link_text", "crawler.visit.page_reading", "crawler.visit.pure_scanner"),
    *("crawler.visit.reading_note", "crawler.visit.references", "crawler.visit.scanner", "crawler.visit.simhash"),
    "crawler.visit.validation",
)


def print_of_reading() -> bytes:
    """The print; empty where the files are not to be had, and then nothing is noted."""
    found = hashlib.blake2b(digest_size=16)
    found.update(f"{sys.version} {scanner.IMPLEMENTATION}".encode())
    try:
        for name in MODULES:
            found.update(_content(importlib.import_module(name).__file__))
        if scanner.compiled is not None:
            found.update(_content(scanner.compiled.__file__))
    except OSError:
        return b""
    return found.digest()


def _content(path: str | None) -> bytes:
    if path is None:
        raise FileNotFoundError
    return Path(path).read_bytes()


READING_CODE = print_of_reading()
