"""A fetcher process: it claims domains, makes their visits one after the other, and records the results.

    claims            announced domains become held ones; `takeover` completes a dead fetcher's work
    leased_domain     a held domain: `job_queue`, `domain_pace`, `visit_in_progress`, and its progress
    due_queue         held domains by the time at which they are due
    request_loop      the thread that works on due domains, one greenlet and one slot each
    domain_worker     one domain from job to job, with `robots_cache`
    parse_memory      the memory budget for bodies that are read
    outlook           failures that may be ours: held back until somebody can tell
    gated_request     one request through its domain's gate
    journal           the result log, its fsync, the bookmarks
    fetcher           the process: puts the parts together, runs the main thread

Fetch reaches what stages share through `crawler.workspace.door` alone, and never sees a path or a lock.
"""
