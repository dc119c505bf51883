"""The map in a schema of PostgreSQL, for its one writer: what differs from a file of SQLite.

postgres_engine   the connection, transactions, new rows by COPY, copies of a map
packed_links      how links lie in the tables: a row for all links of a page that were found and seen last together
map_tables        the tables of `ingest.writing.schema`, in PostgreSQL's words
map_schemas       maps as schemas: made under another name, and renamed when they are whole
"""
