"""How pages that were accepted before may be asked whether they have changed: their validators, from the map."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from crawler.database.live_map import LiveMap
from crawler.model.records import Validators

_ANSWERS = """
SELECT f.id, f.content_hash, a.url, a.asked_as, f.etag, f.last_modified, a.headers, a.is_etag_vain
FROM json_each(?) AS wanted CROSS JOIN page_facts f ON f.id = wanted.value
CROSS JOIN page_answers a ON a.id = f.id AND a.run = f.run
WHERE f.stored = 1 AND (f.etag IS NOT NULL OR f.last_modified IS NOT NULL)
"""


def validators_of(map_: LiveMap, pages: Iterable[int]) -> dict[int, Validators]:
    """The validators of those of these pages whose last accepted answer has some and is in the store."""
    wanted = orjson.dumps(list(pages)).decode()
    return {
        page: Validators(digest, url, asked_as, etag or "", modified or "", orjson.loads(headers), bool(is_vain))
        for page, digest, url, asked_as, etag, modified, headers, is_vain in map_.ask(_ANSWERS, (wanted,))
    }
