"""The workspace in PostgreSQL: what `crawler.workspace.door` describes, for stages on as many machines as one likes.

    engine_session     a process's connection, its lease, and a thread for what must not wait
    engine_clock       the engine's clock, which alone decides, and this machine's beside it
    gate_rows          gates: many entries and leaves in one statement
    glances            heartbeat, flags and documents, in one statement
    record_logs        results, releases, feed, orders: lines by (segment, offset), as in files
    job_windows        released jobs and the bookmarks in them
    engine_bells       bells by NOTIFY
    engine_workspace   all of it as a `Workspace`
    workspace_schema   the tables

What only one machine needs stays in its workspace folder: logs for people, stored pages, summaries, crash reports, and
what a fetcher is at, for the watchdog beside it. docs/scale.md tells it to users.
"""
