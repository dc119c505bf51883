"""The map in a file of SQLite, for its one writer: what differs from other engines.

sqlite_engine      new rows, links and indexes
write_connection   the writable connection, errors in plain sentences
checkpoint         the log goes back into the database file, in a thread
comparison         the difference between two maps
completed_copy     a copy of the map for readers, while a run changes it
"""
