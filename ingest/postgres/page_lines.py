"""New rows of `pages` as lines of COPY's text format, with an empty value for NULL: they are most of what a batch
writes, and binding 17 values of each would be most of the work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ingest.writing.engine import Row

_IS_SPECIAL = re.compile(r"[\\\t\n\r\0]").search
_SAID = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r", "\0": "\ufffd"})


def page_lines(rows: Iterable[Row]) -> Iterator[str]:
    """The lines of rows as `MapEngine.add_pages` takes them, in their order."""
    for row in rows:
        number, url, domain, state, at, run, error, hash_, wire, domain_id, depth, reach, seen, family, *more = row
        origin, page_type, klass = more
        if _IS_SPECIAL(f"{url}{error}{wire}{page_type}"):
            url, error, wire, page_type = (text.translate(_SAID) for text in (url, error, wire, page_type or ""))
        yield (
            f"{number}\t{url}\t{domain}\t{state}\t{at}\t{run}\t{error}\t{hash_}\t{wire}\t{domain_id}\t"
            f"{'' if depth is None else depth}\t\\\\x{reach.hex()}\t{seen}\t{family or ''}\t{origin}\t"
            f"{page_type or ''}\t{klass}\n"
        )
