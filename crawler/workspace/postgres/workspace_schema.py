"""The tables of the workspace in the engine. A change is a new step at the end of `WORKSPACE`, never an edit.

Times are microseconds of the engine's clock since 1970 (`clock_us`): nothing here compares clocks of two machines.
"""

from __future__ import annotations

from crawler.engine.schemas import Schema

_FIRST = """
CREATE FUNCTION clock_us() RETURNS bigint LANGUAGE sql VOLATILE AS
    $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

-- The engine as it was when somebody last looked: its identity and timeline. Another one: a copy took over.
CREATE TABLE eras (only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one), era text NOT NULL);

-- Processes. All leases of a process end with its row's: `until_us` passes, or it is fenced, and then for good.
CREATE TABLE holders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    machine text NOT NULL,
    pid integer NOT NULL,
    joined_us bigint NOT NULL,
    renewed_us bigint NOT NULL,
    until_us bigint NOT NULL,
    slots integer NOT NULL DEFAULT 0,
    is_fenced boolean NOT NULL DEFAULT false
);
CREATE TABLE roles (role text PRIMARY KEY, holder bigint, token bigint NOT NULL);

-- A domain's gate and its lease. `version` grows with every change: a change names the one that it was decided upon.
CREATE TABLE gates (
    domain text PRIMARY KEY,
    holder bigint,
    token bigint NOT NULL DEFAULT 0,
    version bigint NOT NULL DEFAULT 0,
    is_in_flight boolean NOT NULL DEFAULT false,
    flight_by bigint,
    flight_until_us bigint NOT NULL DEFAULT 0,
    entered_us bigint,
    ended_us bigint,
    used_us bigint NOT NULL,
    record bytea NOT NULL DEFAULT ''
) WITH (fillfactor = 50);
CREATE INDEX gates_by_holder ON gates (holder) WHERE holder IS NOT NULL;

-- Logs. `segment` is the newest one that was begun: who writes to an older one is somebody that was replaced.
CREATE TABLE logs (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text UNIQUE NOT NULL,
    segment bigint NOT NULL
);
CREATE TABLE segments (
    log integer NOT NULL REFERENCES logs ON DELETE CASCADE,
    number bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (log, number)
) WITH (fillfactor = 50);
CREATE TABLE records (
    log integer NOT NULL,
    segment bigint NOT NULL,
    start bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (log, segment, start)
);
ALTER TABLE records ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE SEQUENCE window_numbers;
CREATE TABLE job_domains (domain text PRIMARY KEY, bookmark bytea);
CREATE TABLE windows (domain text NOT NULL, number bigint NOT NULL, body bytea NOT NULL, PRIMARY KEY (domain, number));

CREATE TABLE robots (host text PRIMARY KEY, content bytea NOT NULL, at_us bigint NOT NULL);
CREATE TABLE flags (name text PRIMARY KEY);
CREATE UNLOGGED TABLE bells (name text PRIMARY KEY);
CREATE UNLOGGED TABLE heartbeats (name text PRIMARY KEY, content bytea NOT NULL);
CREATE TABLE documents (name text PRIMARY KEY, content bytea NOT NULL);
"""

# An engine that crashes empties unlogged tables: `status` knew no process until each had beaten again.
_KEEP_HEARTBEATS = """
ALTER TABLE bells SET LOGGED;
ALTER TABLE heartbeats SET LOGGED;
"""

# Segments whose lines are in files by now: `archive` says where. The name keeps crawls apart whose segments have the
# same numbers; the last line tells the run of a segment where its file is not.
_ARCHIVE = """
CREATE TABLE archive_name (only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one), name text NOT NULL);
CREATE TABLE archives (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    machine text NOT NULL,
    folder text NOT NULL,
    UNIQUE (machine, folder)
);
ALTER TABLE segments ADD COLUMN archive integer REFERENCES archives, ADD COLUMN last_line bytea;
"""

# Bookmarks move with every group of results: without room beside a row, each move would enter the index again.
_MOVE_BOOKMARKS = "ALTER TABLE job_domains SET (fillfactor = 50);"

WORKSPACE = Schema("sumi_workspace", (_FIRST, _KEEP_HEARTBEATS, _ARCHIVE, _MOVE_BOOKMARKS))
