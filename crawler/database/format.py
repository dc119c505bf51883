"""PURE. The format of a map: its version, and the words that are stored as numbers."""

from __future__ import annotations

SCHEMA_VERSION = 8  # what the ingest writes; a format lacks what `SINCE_FORMAT_n` and `FROM_FORMAT_n` add to it
OLDEST_READABLE = 2  # no `unsummed_visits`, so all its links are in `domain_links`; format 3 has no `run_figures`

# frontier.priority: depth, class and kind in one number (`crawler.rules.page_priority`), and on top of that for pages
# that no link leads to. The sitemaps of a domain come after all its pages.
UNLINKED_PRIORITY = 1 << 40
SITEMAP_PRIORITY = 1 << 41
# frontier.turn: pages that are not due go after all others of their domain, and sitemaps after those.
NOT_DUE_TURN = 1 << 39
SITEMAP_TURN = 1 << 40

# links.kind
LINK_FOLLOWED = 0
LINK_NOT_FOLLOWED = 1  # on a page that says nofollow
LINK_REDIRECT = 2
