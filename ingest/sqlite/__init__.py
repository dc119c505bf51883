"""The map in SQLite, for its one writer. The only room of the ingest with SQL.

store           the door: rows of a batch in, changes out, one transaction a batch
schema, setup   tables; a map before its first batch
connection      the writable connection, errors in plain sentences
transactions    a commit per batch, or one for a whole map
page_rows, domain_rows, run_rows   rows into memory and back
change_writer   a batch becomes rows: page_writer, depth_writer, link_writer, frontier_writer
domain_sums     links summed up by domain
checkpoint      the log goes back into the database file, in a thread
comparison      the difference between two maps
completed_copy  a copy of the map for readers, while a run changes it
"""
