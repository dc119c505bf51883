"""PURE. The commented config that `sumi-ripple init` writes."""

from __future__ import annotations

TEMPLATE = """\
# Sumi-Ripple: what to crawl, and how politely.
# Check it with `sumi-ripple crawl THIS-FILE --dry-run`, then leave --dry-run out.
# Only the quality list is needed; everything else is shown with its default.

[crawler]
max-depth = 3                       # steps away from a quality domain
max-concurrent-pages-open = 10      # requests on the wire at one time, over all domains (1 to 100)
minimum-time-on-page = 1000         # milliseconds between two requests to one domain (100 or more)
max-domain-requests = 500           # per run and domain, robots.txt and retries included
discovered-domain-requests = 50     # the same for domains outside the quality list
# workers = 0                       # fetcher processes; 0: as many as fit this machine
# head-requests = "always"          # always | auto (only where a URL does not look like a page) | never
# on-429 = "suspend"                # suspend the domain for this run | wait as Retry-After asks, then go on
# max-retry-after = 300000          # milliseconds; with "wait", a longer Retry-After suspends
# retries = 3                       # after server errors and timeouts
# retry-delay = 5000                # milliseconds between them
# robots-unreachable = "fail"       # fail its pages | allow everything
# max-crawl-delay = 120000          # milliseconds; a domain whose robots.txt asks for more is skipped
# obey-nofollow = true              # of a whole page (meta robots, X-Robots-Tag)
# max-links-per-page = 10000
# link-text = false                 # keep the text and rel of every link: for explain, candidates, exports
# order = "depth"                   # nearest pages first | priority: seeds, front and shallow pages first
# tracking-parameters = ["utm_*", "fbclid", "gclid", "mc_eid", "ref", "source"]

[user-agent]                        # who you are, for the owners of the sites you visit
crawler-name = "SumiRipple"         # letters, digits and hyphens
crawler-version = "1.0"
contact-url = "https://example.com/about-our-crawler"
contact-email = "crawler-admin@example.com"

[output]                            # relative paths start from this file's folder
database-path = "./sumi-ripple.db"
summary-path = "./crawl-summary.md"
# workspace-path = "./workspace"    # spools and state

# [limits]                          # of a run; reaching one ends it in good order, and the next start goes on
# max-pages = 10000                 # visits
# max-domains = 500
# max-duration = "6h"               # s, m, h or d
# max-bytes = "2 GB"

# [discovery]                       # pages that no link leads to
# sitemaps = true                   # of quality domains: robots.txt, /sitemap.xml, /sitemap_index.xml
# pagination = "off"                # off | label: note the next page of a list, where it is linked
#                                   # | speculate: in quality domains, try the page after the last one, too
# max-list-guesses = 20             # for one list and run
# archives = false                  # in quality domains, try /YYYY, /YYYY/MM and /archive above linked pages
# max-archive-pages = 50            # for one domain and run
# elsewhere = false                 # outside of quality domains too, visit pages of sitemaps and go on with
#                                   # lists, where links lead to their host or list within max-depth

# [revisit]                         # of a page that an earlier run visited
# schedule = "always"               # with every run | adaptive: sooner if it changes, later if not | "30d"
# first-interval = "7d"             # adaptive: after the first visit
# shortest-interval = "1d"
# longest-interval = "60d"

# -- Quality list: the domains to explore fully. "*.example.org" means example.org and all its subdomains.

[[quality]]
domain = "example.com"              # without seeds, it starts from https://example.com/
                                    # seeds-file = "urls.txt" takes them from a file, one a line
# note = "why it is here"           # every list takes a note and tags: for summary and exports
# tags = ["example"]

[[quality]]
domain = "*.example.org"
seeds = [
    "https://blog.example.org/",
    "https://docs.example.org/getting-started",
]

# -- Blacklist: never visited; links to them are counted. It wins over the other lists.

[[blacklist]]
domain = "ads.example.net"

[[blacklist]]
domain = "*.tracking.example"

# -- Stub list: never visited, but their pages are recorded.

[[stub]]
domain = "*.wiki.example"

# -- Scope: which of their pages are visited. Regular expressions (RE2) over addresses as the map has them:
# https, no www., no slash at the end, no tracking parameters. Try them: sumi-ripple check-url URL THIS-FILE

# [scope]
# allow = ['^https://example\\.com/', '^https://blog\\.']     # with an allow, nothing else is visited
# deny = ['/login', '[?&]sort=']    # deny beats allow; an entry of the quality list may have both for itself

# [[quality]]                       # a part of a site: depth 0 and class "quality" are those of this part
# domain = "uni.example"
# path = "/~lab/"

# [[page-type]]                     # for exports, stats and explain; the first match counts
# name = "issue"
# pattern = '/issues/\\d+$'

# [[cap]]                           # visits in a run: of all matching pages, or for each value of a group
# name = "issues"
# pattern = '^https://forge\\.example/(?P<repository>[^/]+/[^/]+)/issues'
# max-pages = 50
# per = "repository"

# -- Rarely needed -----------------------------------------------------------------------------------

# [network]
# ca-bundle = "ca.pem"              # trusted besides the system's certificates
# allow-private-addresses = false
# connect-timeout = 10000           # milliseconds, as are the next two
# read-timeout = 30000
# total-timeout = 120000            # for one whole response
# max-body-size = 10485760          # bytes, decoded
# processing-timeout = 20000        # milliseconds for reading one page; a fetcher stuck longer is replaced
# parse-memory = 268435456          # bytes for large pages that are read at one time, in each fetcher

# [network.resolve]                 # like curl --connect-to: host pattern → address; the first match wins
# "*.test" = "127.0.0.1:8443"

# [traps]                           # 0 turns a limit off
# max-url-length = 2000
# max-path-depth = 24               # segments
# max-path-repeats = 3              # how often one segment may be in a path
# max-query-variants = 200          # visits of one path under different queries, per run
# max-similar-paths = 5000          # visits of paths that differ only in numbers or ids, per run
# max-subdomains = 200              # hosts visited under one registered domain, per run

# [resilience]
# breaker-failures = 5              # visits of a domain that fail in a row; then it is left alone (0: never)
# breaker-cooldown = "60s"          # for so long at first, twice as long after each trial that fails
# breaker-longest-cooldown = "1h"
# breaker-successes = 2             # trials in a row that succeed; then all is well again
# breaker-counts = ["http-403", "http-429", "http-5xx", "timeout", "hard"]
# breaker-last-wait = "60s"         # a longer cooldown is not waited for when nothing else is left to do
# suspicion = 5                     # domains that fail in a row; then nothing is sent before it is clear why
# probe = []                        # hosts that always answer, like "https://example.com/" or "192.0.2.1:53"
# probe-every = "30s"               # while the network is out: nothing else is sent
# give-up-after = "24h"             # end the run as interrupted when it is out for so long (0: never)
# stall-after = "5m"                # a stage that gets on with nothing for so long is restarted (0: never)
# max-memory = 0                    # of a stage, like "2 GiB"; a fetcher past it is replaced

# [validation]                      # rejects challenges, empty shells, parked domains, logins, soft 404s
# enabled = true
# follow-rejected = false           # follow the links of a rejected page
# learn-404 = false                 # GET a dead link of a domain, too: its soft 404s are known by it
# ignore = ["login-wall"]           # reasons that reject nothing

# [[garbage]]                       # your own sign of a page that is none; `explain` shows its name
# name = "paywall"
# selector = "div.paywall"          # a CSS selector, or text = "Subscribe to read": a text that is shown
# verdict = "soft"                  # soft: no content | hard: the site refuses its visitors

# [store]                           # docs/keeping.md
# html = false                      # keep the pages themselves, compressed, in workspace/store/html
# file-mode = "0600"                # who may read them: you alone; "0640" or "0644" for others, too
# near-duplicates = false           # find pages whose texts are nearly the same (a millisecond a page)

# [[extract]]                       # your own fields, from pages of a domain, a page type, or all
# name = "author"
# selector = "span.author"          # CSS ("time::attr(datetime)", "h2::text") or XPath ("//article//p[1]")
# domain = "*.example.com"
# page-type = "issue"

# [[hook]]                          # tell others of events: a signed POST; or an e-mail, see deploy/mail
# url = "https://example.com/hooks/crawl"
# secret = "at least 16 characters" # for its signature: docs/operations.md
# events = ["run-finished", "run-failed", "alert-raised"]   # without it: these and four more

# [spool]
# segment-size = 16777216           # bytes
# results = 0                       # keep the results of this many runs; 0: of all (replay needs them)
# max-backlog = 100000              # results that wait to be applied: fetchers slow down at half, wait at it
# max-backlog-bytes = "1 GiB"       # the same in bytes (0: no limit)
# min-free-disk = "128 MiB"         # fetchers slow down at twice as much, and wait at it (0: no limit)

# [engine]                          # more machines: docs/scale.md. Without it, files and SQLite
# url = "postgresql://crawl@db.example/terrain"
# lease = "30s"                     # a process that is silent for so long loses its domains to others
# results = 0                       # keep the results of this many runs in it, older ones in files; 0: of all
# archive = "workspace/archive/results"   # the folder for those files

# [logs]                            # files for people and other programs, in the workspace
# pages = true                      # logs/pages-<run>.csv: a row for every visit
# metadata = true                   # metadata/crawl_metadata.jsonl: a record for every visit, over all runs
# metrics = true                    # logs/metrics-<run>.csv
# metrics-every = "10s"

# [retention]                       # what `sumi-ripple prune` may remove; without a key, its kind is kept
# results = 10                      # runs; goes only by name: `prune results`, because replay needs it
# blobs = "30d"                     # stored pages; those that a revisit needs go only by name: `prune blobs`
# logs = "7d"                       # their daily figures are rolled up before they go
# metadata = "90d"                  # lines of metadata/crawl_metadata.jsonl; their figures are rolled up, too
# quarantine = "30d"                # broken spool lines that were set aside
# summaries = "90d"                 # of single runs; their figures stay
# run-maps = "7d"                   # maps of single runs, made again when they are asked for
# aside = "90d"                     # crawls that --fresh moved aside; go only by name
"""
