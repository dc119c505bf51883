"""The look-up of addresses in the page index, compiled from `_lookup.c` where a compiler was found.

What it does is done in Python, too, with equal results: the hash table of `page_index`, and `LinkFinder` in
`ingest.links`, which reads by itself all that is left: hrefs that are no plain path on a site that was parsed before.
`IMPLEMENTATION` tells which one is in use; with SUMI_RIPPLE_PURE=1 in the environment it is the one in Python.
"""

from __future__ import annotations

import os
from typing import Any

CONTRACT = 1  # what `_lookup.c` must say too: a build left over from other sources is not used


def _compiled() -> Any:
    if os.environ.get("SUMI_RIPPLE_PURE"):
        return None
    try:
        from ingest.memory import _lookup
    except ImportError:
        return None
    return _lookup if _lookup.CONTRACT == CONTRACT else None


compiled: Any = _compiled()
IMPLEMENTATION = "python" if compiled is None else "c"
