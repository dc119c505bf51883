"""The map for readers: the only place that opens it read-only, and the constants of its format.

reader      open_map: one snapshot, checked before the first question; engine_reader: of a map in PostgreSQL
dialect     what statements have to keep to, and PostgreSQL's words for those that SQLite says differently
map_session one connection to a map in PostgreSQL
live_map    a map that the ingest is writing, or may replace: every question sees the newest commit
frontier    the scheduler's questions, on a live map
completed   which file people are shown while a run is under way
progress    questions that need no snapshot: how far the result logs were read, which domains are closed
digest      one hash for a whole map
ids         how two numbers share one row id
format      schema version and link kinds
errors      everything that can be wrong with a map

Callers see `MapReader`, `Frontier` and MapError, never the engine. SQL is written here, in `ingest.writing` and its
engines, and in `reporter.queries`, and nowhere else.
"""
