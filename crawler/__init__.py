"""Sumi-Ripple's shared packages and its scheduler, fetchers and supervisor. One URL's journey through them:

    cli → supervise    a crawl starts: one scheduler, some fetchers, one ingest, each a process of its own
    schedule           the scheduler reads the frontier through `database` and releases jobs into the `workspace`
    fetch              a fetcher claims the job's domain and makes the visit:
                         `visit` decides what to request, `pace` decides when, `net` does it
    workspace          the result is appended to the fetcher's result log, made durable, and the bookmark moves
    ingest             (beside this package) reads the result logs, applies them to the map, feeds hints back
    reporter           (beside this package) reads the map and writes summary, explanations and exports

`model` holds the words that all of them use, `rules` the policy, `config` the user's file; `observe` looks on from
outside; `demo` serves a small web to crawl.

Import rules, held by `tests/test_house.py`:

- `crawler` imports neither `ingest` nor `reporter`, its command line and the stage processes aside;
- `ingest` and `reporter` never import each other; `schedule` and `fetch` never import each other;
- `model`, `rules`, `pace` and `visit` are PURE: no clock, no files, no network, not through others either;
- `sqlite3` is imported only in `database`, `ingest.sqlite` and `reporter.queries`, `psycopg` only in `engine`,
  `workspace.postgres` and `database`; sockets and TLS only in `net`; file locks only in `workspace.files`.
"""
