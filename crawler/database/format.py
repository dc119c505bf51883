"""PURE. The format of a map: its version, and the words that are stored as numbers."""

from __future__ import annotations

SCHEMA_VERSION = 5  # what the ingest writes; format 4 has no `breakers`, 3 no `run_figures` and `run_settings` either
OLDEST_READABLE = 2  # it has no `unsummed_visits` either: all its links are counted in `domain_links`

# links.kind
LINK_FOLLOWED = 0
LINK_NOT_FOLLOWED = 1  # on a page that says nofollow
LINK_REDIRECT = 2
