"""The tables. Names and columns of the first product specification, plus those that speed and exactness need.

Four ideas save most of the cost of a crawl database:

- a page is found by `url_hash` (64 bits), not by a unique index over long texts, and by the ingest itself in memory
  (`ingest/memory/page_index.py`);
- `links.id` holds both page numbers (likewise the referrers') and `page_depths.id` page and origin
  (`crawler/database/ids.py`), so the primary key is the uniqueness, and new rows go where rows were just written;
- the tables that grow with the links (links, page_depths, the referrers, frontier, domain_links) name no REFERENCES:
  checking them would cost more than writing them (1.3 of 2.4 µs a link, and more as the map grows). The ingest
  numbers pages itself and writes both ends in one transaction; tests check that no end is missing;
- `READING_INDEXES` and `READING_VIEWS` exist only while no run is under way: few questions need them in between.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import orjson

from crawler.database.format import LINK_FOLLOWED, LINK_NOT_FOLLOWED
from crawler.database.ids import ORIGIN_BITS, PAIR_BITS, PAIR_LOW, links_of
from crawler.model.states import ERRORS

ERROR_STATES = ", ".join(f"'{state.value}'" for state in sorted(ERRORS))  # a list in SQL
_LIST = 5000  # ids in one parameter

# New in format 3; all links of a map of format 2 are summed up.
SINCE_FORMAT_2 = f"""
CREATE TABLE unsummed_visits (                 -- of the run under way: domain_links does not count their new links yet
    id              INTEGER PRIMARY KEY,       -- domain_id << {PAIR_BITS} | page_id
    links           INTEGER NOT NULL           -- how many they are
);
CREATE VIEW unsummed_links AS                  -- those links, a row for each (ingest/writing/domain_sums.py)
SELECT visit.id >> {PAIR_BITS} AS from_domain_id, target.domain_id AS to_domain_id
FROM unsummed_visits AS visit
CROSS JOIN links ON {links_of("links", f"(visit.id & {PAIR_LOW})")}
CROSS JOIN pages AS target ON target.id = links.to_page_id
WHERE +links.discovered_run = (SELECT max(id) FROM runs); -- the +: SQLite would make an index over all links for it
"""

# New in format 4: the figures and settings of every run, which the pages of a later run no longer show.
SINCE_FORMAT_3 = """
CREATE TABLE run_figures (                     -- counted when the run was finished
    id              INTEGER PRIMARY KEY,       -- = runs.id
    pages           INTEGER NOT NULL,          -- crawled
    known           INTEGER NOT NULL,          -- seen, in every state
    links           INTEGER NOT NULL,
    errors          INTEGER NOT NULL,
    domains         INTEGER NOT NULL           -- with a page that was seen
);
CREATE TABLE run_settings (                    -- as recorded when the run started, and whenever it was resumed
    id              INTEGER PRIMARY KEY,
    run             INTEGER NOT NULL,
    at              TEXT NOT NULL,
    settings        TEXT NOT NULL              -- JSON: crawler/model/recorded_settings.py
);
"""

# New in format 5: the circuit breakers of domains, the texts of links, and the sitemaps that were read.
SINCE_FORMAT_4 = f"""
CREATE TABLE sitemaps (                        -- of quality domains; a robots.txt is the first of them
    id              INTEGER PRIMARY KEY,       -- a waiting one has a row in `frontier` under the number below zero
    url             TEXT NOT NULL UNIQUE,
    wire_url        TEXT NOT NULL,
    domain_id       INTEGER NOT NULL,
    announced_by    TEXT NOT NULL,             -- the domain whose robots.txt led here
    level           INTEGER NOT NULL,          -- steps from that robots.txt, which has 0
    run             INTEGER NOT NULL,          -- the last run that knew of it
    state           TEXT NOT NULL,             -- waiting | read | failed, in `run`
    form            TEXT,                      -- urlset | index | feed | text | invalid | robots
    entries         INTEGER NOT NULL DEFAULT 0,
    left_out        INTEGER NOT NULL DEFAULT 0, -- entries of other hosts
    is_cut          INTEGER NOT NULL DEFAULT 0, -- it was longer than is read
    status_code     INTEGER,
    error_message   TEXT,
    read_at         TEXT
);
CREATE TABLE next_pages (                      -- lists over several pages, where [discovery] pagination labels them
    id              INTEGER PRIMARY KEY,       -- = pages.id
    next_id         INTEGER NOT NULL,          -- pages.id of the next page
    evidence        TEXT NOT NULL,             -- rel (the site says so) | address (a number that a word for page names)
    rule_id         INTEGER                    -- pagination_rules.id, where the next page's address has a number
);
CREATE INDEX idx_next_pages_rule ON next_pages(rule_id) WHERE rule_id IS NOT NULL;
CREATE TABLE pagination_rules (                -- forms of lists that were met
    id              INTEGER PRIMARY KEY,       -- hash of the form
    form            TEXT NOT NULL,             -- an address with {{n}} in place of the number
    domain_id       INTEGER NOT NULL,
    last_number     INTEGER NOT NULL,          -- the highest that is linked as a next page
    first_run       INTEGER NOT NULL,
    last_run        INTEGER NOT NULL,
    ended_by        TEXT,                      -- why no more pages of it were tried in `ended_run`
    ended_run       INTEGER
);
CREATE TABLE list_pages (                      -- with [discovery] pagination = "speculate"
    id              INTEGER PRIMARY KEY,       -- = pages.id
    rule_id         INTEGER NOT NULL,          -- pagination_rules.id
    number          INTEGER NOT NULL
);
CREATE INDEX idx_list_pages_rule ON list_pages(rule_id, number);
CREATE TABLE guesses (                         -- pages that were tried without a link
    id              INTEGER PRIMARY KEY,       -- = pages.id
    run             INTEGER NOT NULL,          -- the last run that tried it
    way             TEXT NOT NULL,             -- speculated | archive | sitemap (outside of quality domains)
    rule_id         INTEGER NOT NULL,          -- pagination_rules.id or archive_rules.id; of a sitemap's page no row's
    found           INTEGER                    -- pages that the run had not seen before its visit; NULL: not visited
);
CREATE INDEX idx_guesses_rule ON guesses(rule_id, run);
CREATE TABLE archive_rules (                   -- forms of archives that links of a quality domain show
    id              INTEGER PRIMARY KEY,       -- hash of the form
    form            TEXT NOT NULL,             -- an address with {{year}} and {{month}} in place of a date
    domain_id       INTEGER NOT NULL,
    first_run       INTEGER NOT NULL,
    last_run        INTEGER NOT NULL,
    ended_by        TEXT,                      -- why no more pages of it were tried in `ended_run`
    ended_run       INTEGER
);
CREATE TABLE archive_pages (                   -- addresses in these forms that links show
    id              INTEGER PRIMARY KEY,       -- hash of the page's key
    rule_id         INTEGER NOT NULL,          -- archive_rules.id
    url             TEXT NOT NULL,             -- to be requested
    run             INTEGER NOT NULL,          -- the last run that saw such a link
    page_id         INTEGER                    -- pages.id, if it is known
);
CREATE INDEX idx_archive_pages_rule ON archive_pages(rule_id, run);
CREATE TABLE sitemap_entries (                 -- pages that are in a sitemap, linked or not
    id              INTEGER PRIMARY KEY,       -- = pages.id
    sitemap_id      INTEGER NOT NULL,          -- the one with the latest date
    lastmod         TEXT,                      -- as precise as it was written
    run             INTEGER NOT NULL           -- the last run that saw it there
);
CREATE TABLE breakers (                        -- of domains whose breaker was not closed all the time
    id              INTEGER PRIMARY KEY,       -- = domain_states.id
    run             INTEGER NOT NULL,
    state           TEXT NOT NULL,             -- open | half-open | closed
    changes         INTEGER NOT NULL,          -- of state, in that run
    changed_at      TEXT NOT NULL,
    detail          TEXT                       -- the reason of the last change
);
CREATE TABLE link_texts (                      -- of links whose page was read with [crawler] link-text
    id              INTEGER PRIMARY KEY,       -- = links.id: from_page_id << {PAIR_BITS} | to_page_id
    text            TEXT,                      -- trimmed to 120 characters
    rel             TEXT
);
"""

# When pages are due again, and what tells whether they have changed.
_REVISITS = """
CREATE TABLE revisits (                        -- with a [revisit] schedule; of use while `run` = pages.visited_run
    id              INTEGER PRIMARY KEY,       -- = pages.id
    run             INTEGER NOT NULL,          -- the last run that visited the page, or carried it
    outcome         TEXT NOT NULL,             -- the state that its last visit ended in
    error           TEXT,
    visited_at      TEXT NOT NULL,             -- that visit
    previous_at     TEXT,                      -- the visit before it
    interval        INTEGER NOT NULL,          -- seconds
    next_crawl_at   TEXT,                      -- NULL: with the next run, because the last visit found no answer
    print           INTEGER,                   -- the same for visits that found the same outcome, text and links
    changed_at      TEXT NOT NULL,             -- the visit that found it new, or changed
    is_changed      INTEGER,                   -- by the last visit; NULL: that was the first one
    carried_run     INTEGER                    -- the last run that did not visit it, because it was not due
);
CREATE TABLE lastmod_proofs (                  -- did sitemaps tell of the changes that visits found?
    domain_id       INTEGER NOT NULL,
    run             INTEGER NOT NULL,
    foretold        INTEGER NOT NULL,          -- visits that found what `lastmod` had said
    missed          INTEGER NOT NULL,          -- visits that found a change which it had not told of
    PRIMARY KEY (domain_id, run)
) WITHOUT ROWID;
"""

# New in format 6: what accepted pages say about themselves.
SINCE_FORMAT_5 = (
    """
CREATE TABLE page_facts (                      -- of the last visit that was accepted with status 200
    id              INTEGER PRIMARY KEY,       -- = pages.id
    run             INTEGER NOT NULL,          -- of that visit; pages.visited_run may be a later one that failed
    content_hash    TEXT NOT NULL,             -- SHA-256 of the decoded body, in hex: the name of its blob
    stored          INTEGER NOT NULL,          -- 1: the body was put into the store
    noarchive       INTEGER NOT NULL,          -- 1: the page asks that no copy is kept
    bytes           INTEGER NOT NULL,          -- decoded
    etag            TEXT,                      -- as the server wrote it
    last_modified   TEXT,
    description     TEXT,
    language        TEXT,
    canonical       TEXT,                      -- absolute
    heading         TEXT,                      -- the first <h1>
    link_count      INTEGER NOT NULL,          -- different addresses that the page links to
    text_hash       TEXT,                      -- the same for pages that show the same text; NULL: they show none
    simhash         TEXT                       -- 64 bits in hex: few differ between texts that are nearly the same
);
CREATE TABLE page_fields (                     -- the user's own ([[extract]]), of the last accepted visit
    id              INTEGER NOT NULL,          -- = pages.id
    name            TEXT NOT NULL,
    position        INTEGER NOT NULL,          -- of several values
    value           TEXT NOT NULL,
    PRIMARY KEY (id, name, position)
) WITHOUT ROWID;
CREATE TABLE cap_pages (                       -- pages under a [[cap]]
    unit            INTEGER NOT NULL,          -- what the cap counts together (crawler/rules/page_rules.py)
    page_id         INTEGER NOT NULL,
    PRIMARY KEY (unit, page_id)
) WITHOUT ROWID;
"""
    + _REVISITS
)

SINCE_FORMAT_6 = """
CREATE TABLE page_answers (                    -- how a stored page was answered, besides page_facts
    id              INTEGER PRIMARY KEY,       -- = pages.id
    run             INTEGER NOT NULL,          -- of use while it is page_facts.run
    url             TEXT NOT NULL,             -- that answered
    asked_as        INTEGER NOT NULL,          -- a hash of the headers of our request
    headers         TEXT NOT NULL,             -- JSON: those of the answer that say something about the page
    is_etag_vain    INTEGER NOT NULL           -- 1: the page was sent again in spite of its ETag
);
"""

# New in format 5, on the tables of format 4.
FROM_FORMAT_4 = """
ALTER TABLE frontier ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain_states ADD COLUMN cut_run INTEGER;
UPDATE domain_states SET cut_run = run WHERE closed_reason = 'request-limit';
UPDATE frontier SET turn = coalesce((SELECT 1 + visited_run FROM pages WHERE pages.id = frontier.id), 0);
DROP INDEX idx_frontier_domain;
CREATE INDEX idx_frontier_domain ON frontier(domain_id, turn, priority, id);
ALTER TABLE pages ADD COLUMN truncated INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pages ADD COLUMN validation TEXT;
ALTER TABLE pages ADD COLUMN rejection_reason TEXT;
ALTER TABLE pages ADD COLUMN text_print INTEGER;
ALTER TABLE pages ADD COLUMN origin TEXT NOT NULL DEFAULT 'linked';
UPDATE pages SET origin = 'seed'
WHERE id IN (SELECT value FROM json_each((SELECT value FROM meta WHERE name = 'seeds')));
"""

# New in format 6, on the tables of format 5.
FROM_FORMAT_5 = """
ALTER TABLE pages ADD COLUMN page_type TEXT;
ALTER TABLE pages ADD COLUMN class TEXT;
"""

# New in format 8, on the tables of format 7.
FROM_FORMAT_7 = """
ALTER TABLE pages ADD COLUMN links_print INTEGER;
"""

TABLES = (
    f"""
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE runs (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    started_at      TEXT NOT NULL,
    finished_at     TEXT,
    config_hash     TEXT NOT NULL,
    status          TEXT NOT NULL              -- running | interrupted | completed
);
CREATE INDEX idx_runs_status ON runs(status);

CREATE TABLE origins (                         -- quality entries, numbered for page_depths.id
    id              INTEGER PRIMARY KEY,
    pattern         TEXT NOT NULL UNIQUE
);

CREATE TABLE domain_states (                   -- every domain ever seen, in every class
    id                  INTEGER PRIMARY KEY AUTOINCREMENT,
    domain              TEXT NOT NULL UNIQUE,
    request_count       INTEGER DEFAULT 0,     -- in run `run`
    rate_limited        INTEGER DEFAULT 0,     -- in run `run`
    robots_txt          TEXT,
    robots_fetched_at   TEXT,
    class               TEXT NOT NULL,         -- quality | blacklisted | stubbed | discovered
    run                 INTEGER NOT NULL DEFAULT 0,
    closed_reason       TEXT,                  -- in `run`: the reasons of crawler/pace/decisions.py
    closed_at_request   INTEGER,
    lost_requests       INTEGER NOT NULL DEFAULT 0,
    robots_outcome      TEXT,                  -- parsed | allow-all | unreachable
    robots_status       INTEGER,
    crawl_delay         REAL,
    first_seen_run      INTEGER NOT NULL DEFAULT 0,
    cut_run             INTEGER                -- the last run in which its request budget ran out
);

CREATE TABLE pages (
    id              INTEGER PRIMARY KEY,
    url             TEXT NOT NULL,             -- the key; unique through url_hash
    domain          TEXT NOT NULL,
    state           TEXT NOT NULL,
    title           TEXT,
    status_code     INTEGER,
    content_type    TEXT,
    last_modified   TEXT,
    visited_at      TEXT,
    discovered_at   TEXT NOT NULL,
    discovered_run  INTEGER NOT NULL REFERENCES runs(id),
    error_message   TEXT,
    retry_count     INTEGER DEFAULT 0,
    url_hash        INTEGER NOT NULL,
    wire_url        TEXT,                      -- the URL to request, where it is not the key
    domain_id       INTEGER NOT NULL REFERENCES domain_states(id),
    depth           INTEGER,                   -- the least of its depths in `seen_run`; NULL: no followed path here
    reach           BLOB NOT NULL DEFAULT x'',  -- its depths in `seen_run`, packed (ingest/rules/depth.py)
    seen_run        INTEGER NOT NULL,          -- the last run that saw a link to it (or seeded it)
    visited_run     INTEGER,                   -- the last run that visited it
    redirect_to     INTEGER,                   -- pages.id, if that visit was redirected to another page
    family          INTEGER,                   -- hash of its trap family, if it is in one
    nofollow        INTEGER NOT NULL DEFAULT 0,
    links_cut       INTEGER NOT NULL DEFAULT 0,
    bytes           INTEGER,
    truncated       INTEGER NOT NULL DEFAULT 0, -- 1: the compressed body ended before its stream
    validation      TEXT,                      -- ok | soft | hard: is the answer a page? NULL: not judged
    rejection_reason TEXT,                     -- a slug and words, where it is soft or hard
    text_print      INTEGER,                   -- the same for pages that show the same (ingest/writing/likeness.py)
    origin          TEXT NOT NULL DEFAULT 'linked', -- crawler/model/origins.py
    page_type       TEXT,                      -- the name of the [[page-type]] that it is of
    class           TEXT,                      -- where it is not its domain's: outside of a quality entry with a path
    links_print     INTEGER                    -- the same for visits that found the same links (ingest/links.py)
);
CREATE INDEX idx_pages_redirect ON pages(redirect_to) WHERE redirect_to IS NOT NULL;
CREATE INDEX idx_pages_family ON pages(family) WHERE family IS NOT NULL;

CREATE TABLE page_depths (
    id              INTEGER PRIMARY KEY,       -- page_id << {ORIGIN_BITS} | origins.id
    page_id         INTEGER NOT NULL,
    quality_origin  TEXT NOT NULL,
    depth           INTEGER NOT NULL
);

CREATE TABLE links (
    id              INTEGER PRIMARY KEY,       -- from_page_id << {PAIR_BITS} | to_page_id
    from_page_id    INTEGER NOT NULL,
    to_page_id      INTEGER NOT NULL,
    discovered_run  INTEGER NOT NULL,
    last_run        INTEGER NOT NULL,
    kind            INTEGER NOT NULL DEFAULT {LINK_FOLLOWED} -- see crawler/database/format.py
);

CREATE TABLE domain_links (                    -- links summed up by domain, except for unsummed_links
    id              INTEGER PRIMARY KEY,       -- from_domain_id << {PAIR_BITS} | to_domain_id
    from_domain_id  INTEGER NOT NULL,
    to_domain_id    INTEGER NOT NULL,
    links           INTEGER NOT NULL
);

CREATE TABLE blacklisted_urls (
    id              INTEGER PRIMARY KEY,       -- = pages.id
    url             TEXT NOT NULL,
    domain          TEXT NOT NULL,
    reference_count INTEGER DEFAULT 1,         -- different pages that link here
    first_seen_run  INTEGER NOT NULL REFERENCES runs(id)
);
CREATE TABLE blacklisted_referrers (
    id                  INTEGER PRIMARY KEY,   -- referrer_page_id << {PAIR_BITS} | blacklisted_url_id
    blacklisted_url_id  INTEGER NOT NULL,
    referrer_page_id    INTEGER NOT NULL,
    discovered_run      INTEGER NOT NULL
);
CREATE TABLE stubbed_urls (
    id              INTEGER PRIMARY KEY,       -- = pages.id
    url             TEXT NOT NULL,
    domain          TEXT NOT NULL,
    reference_count INTEGER DEFAULT 1,
    first_seen_run  INTEGER NOT NULL REFERENCES runs(id)
);
CREATE TABLE stubbed_referrers (
    id               INTEGER PRIMARY KEY,      -- referrer_page_id << {PAIR_BITS} | stubbed_url_id
    stubbed_url_id   INTEGER NOT NULL,
    referrer_page_id INTEGER NOT NULL,
    discovered_run   INTEGER NOT NULL
);

CREATE TABLE frontier (                        -- pages to visit in the run under way
    id          INTEGER PRIMARY KEY,           -- = page_id: pages are numbered as they are found, so lower is older
    page_id     INTEGER NOT NULL,
    priority    INTEGER NOT NULL,              -- lower goes first (ingest/rules/page_state.py)
    added_at    TEXT NOT NULL,
    domain_id   INTEGER NOT NULL,
    turn        INTEGER NOT NULL DEFAULT 0     -- lower goes first in its domain (ingest/writing/frontier_writer.py)
);
CREATE INDEX idx_frontier_domain ON frontier(domain_id, turn, priority, id);

CREATE TABLE closed_families (                 -- families and units of caps whose visit limit is reached
    id          INTEGER PRIMARY KEY,           -- hash of (domain, family)
    run         INTEGER NOT NULL,
    domain      TEXT NOT NULL,                 -- '' for a unit of a cap
    family      TEXT NOT NULL,
    error       TEXT NOT NULL,
    spare       TEXT NOT NULL                  -- JSON list of the keys that had been released before
);

CREATE TABLE held_results (                    -- results of pages without a followed path within max-depth (yet)
    id          INTEGER PRIMARY KEY,           -- hash of the page's key; it need not be a page of the map
    run         INTEGER NOT NULL,
    line        BLOB NOT NULL
);

CREATE TABLE applied_events (                  -- records without an identity of their own that were applied
    id          INTEGER PRIMARY KEY            -- hash of the line
);

CREATE TABLE spool_positions (                 -- the place in each result spool; committed with the effects
    writer      TEXT PRIMARY KEY,
    segment     INTEGER NOT NULL,
    offset      INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE quarantine (                      -- spool lines that did not verify
    writer      TEXT NOT NULL,
    segment     INTEGER NOT NULL,
    offset      INTEGER NOT NULL,
    reason      TEXT NOT NULL,
    length      INTEGER NOT NULL,
    PRIMARY KEY (writer, segment, offset)
) WITHOUT ROWID;
"""
    + SINCE_FORMAT_2
    + SINCE_FORMAT_3
    + SINCE_FORMAT_4
    + SINCE_FORMAT_5
    + SINCE_FORMAT_6
)

# Made when a run ends, dropped when one starts: during a crawl each would cost more than the links themselves. Three
# are for our own questions, the rest are the specification's own, for plain SQL, Datasette and the like. On a map of
# 100,000 pages and 2 million links the three take 1.5 s (nearly all of it `idx_links_to`) and 35 MB, the rest 0.8 s
# (half of it `idx_links_from`, 0.1 s the unique one over URLs) and 63 MB.
READING_INDEXES = {
    "idx_pages_hash": "CREATE UNIQUE INDEX IF NOT EXISTS idx_pages_hash ON pages(url_hash)",
    "idx_links_to": "CREATE INDEX IF NOT EXISTS idx_links_to ON links(to_page_id)",
    "idx_pages_domain_id": "CREATE INDEX IF NOT EXISTS idx_pages_domain_id ON pages(domain_id)",
    "idx_pages_url": "CREATE UNIQUE INDEX IF NOT EXISTS idx_pages_url ON pages(url)",
    "idx_pages_domain": "CREATE INDEX IF NOT EXISTS idx_pages_domain ON pages(domain)",
    "idx_pages_state": "CREATE INDEX IF NOT EXISTS idx_pages_state ON pages(state)",
    "idx_pages_discovered_run": "CREATE INDEX IF NOT EXISTS idx_pages_discovered_run ON pages(discovered_run)",
    "idx_page_depths_page": (
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_page_depths_page ON page_depths(page_id, quality_origin)"
    ),
    "idx_page_depths_origin": "CREATE INDEX IF NOT EXISTS idx_page_depths_origin ON page_depths(quality_origin)",
    "idx_page_depths_depth": "CREATE INDEX IF NOT EXISTS idx_page_depths_depth ON page_depths(depth)",
    "idx_links_from": "CREATE INDEX IF NOT EXISTS idx_links_from ON links(from_page_id)",
    "idx_blacklisted_url": "CREATE UNIQUE INDEX IF NOT EXISTS idx_blacklisted_url ON blacklisted_urls(url)",
    "idx_blacklisted_domain": "CREATE INDEX IF NOT EXISTS idx_blacklisted_domain ON blacklisted_urls(domain)",
    "idx_blacklisted_refs": (
        "CREATE INDEX IF NOT EXISTS idx_blacklisted_refs ON blacklisted_urls(reference_count DESC)"
    ),
    "idx_stubbed_url": "CREATE UNIQUE INDEX IF NOT EXISTS idx_stubbed_url ON stubbed_urls(url)",
    "idx_stubbed_domain": "CREATE INDEX IF NOT EXISTS idx_stubbed_domain ON stubbed_urls(domain)",
    "idx_stubbed_refs": "CREATE INDEX IF NOT EXISTS idx_stubbed_refs ON stubbed_urls(reference_count DESC)",
    "idx_frontier_priority": "CREATE INDEX IF NOT EXISTS idx_frontier_priority ON frontier(priority, added_at)",
}
OWN_INDEXES = ("idx_pages_domain_id", "idx_links_to", "idx_pages_hash")  # what our own questions need
FIRST_INDEXES = ("idx_pages_domain_id",)  # and the summary above all: the others are made while it is written
# Those that may be made while a run is still under way (ingest/ahead.py): the cheapest to keep up go first. Not the one
# over states, which every closure changes.
INDEXES_AHEAD = (
    *("idx_page_depths_page", "idx_links_from", "idx_pages_discovered_run", "idx_pages_domain_id", "idx_pages_domain"),
    *("idx_page_depths_depth", "idx_page_depths_origin", "idx_pages_hash", "idx_pages_url", "idx_links_to"),
)

# The map with names instead of numbers, for plain SQL. They exist as long as the indexes that they need.
READING_VIEWS = {
    "v_pages": """
CREATE VIEW IF NOT EXISTS v_pages AS
SELECT p.id, p.url, p.domain, coalesce(p.class, d.class) AS class, p.page_type, p.state, p.depth, p.origin, p.title,
       p.status_code, p.content_type,
       p.error_message, p.truncated, p.validation, p.rejection_reason, target.url AS redirect_to, p.visited_at,
       p.discovered_at, p.discovered_run AS first_run, p.seen_run AS last_run,
       f.content_hash, f.stored, f.bytes, f.description, f.language, f.canonical, f.heading, f.link_count, f.text_hash,
       r.next_crawl_at
FROM pages p JOIN domain_states d ON d.id = p.domain_id LEFT JOIN pages target ON target.id = p.redirect_to
LEFT JOIN page_facts f ON f.id = p.id AND f.run = p.visited_run
LEFT JOIN revisits r ON r.id = p.id AND r.run = p.visited_run""",
    "v_links": f"""
CREATE VIEW IF NOT EXISTS v_links AS
SELECT source.url AS from_url, target.url AS to_url, source.domain AS from_domain, target.domain AS to_domain,
       CASE l.kind WHEN {LINK_FOLLOWED} THEN 'followed' WHEN {LINK_NOT_FOLLOWED} THEN 'nofollow' ELSE 'redirect' END
       AS link,
       l.discovered_run AS first_run, l.last_run, l.from_page_id, l.to_page_id, t.text, t.rel
FROM links l JOIN pages source ON source.id = l.from_page_id JOIN pages target ON target.id = l.to_page_id
LEFT JOIN link_texts t ON t.id = l.id""",
    "v_domain_links": """
CREATE VIEW IF NOT EXISTS v_domain_links AS
SELECT source.domain AS from_domain, target.domain AS to_domain, source.class AS from_class, target.class AS to_class,
       l.links
FROM domain_links l JOIN domain_states source ON source.id = l.from_domain_id
JOIN domain_states target ON target.id = l.to_domain_id""",
}


def columns_of(table: str) -> list[str]:
    """The columns of a table, in their order."""
    found = re.search(rf"CREATE TABLE {table} \((.*?)\n\)", re.sub(r"--.*", "", TABLES), re.DOTALL)
    assert found is not None, table
    lines = [line.strip() for line in found[1].split("\n")]
    return [line.split()[0] for line in lines if line and not line.startswith("PRIMARY KEY")]


def json_list(numbers: Sequence[int]) -> str:
    """A list as one parameter, for json_each: the statement is prepared once, for any number."""
    return orjson.dumps(numbers).decode()


def id_lists(numbers: Sequence[int]) -> Iterator[str]:
    """Ids as lists of bounded length, for json_each."""
    for start in range(0, len(numbers), _LIST):
        yield json_list(numbers[start : start + _LIST])
