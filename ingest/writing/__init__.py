"""The map for its one writer: rows into memory, and the changes of a batch into rows, in SQL that every engine reads.

store           the door: rows of a batch in, changes out, one transaction a batch
engine          what differs between engines, as an interface: `ingest.sqlite` and `ingest.postgres` implement it
schema, setup   tables; a map before its first batch
transactions    a commit per batch, or one for a whole map
page_rows, domain_rows, run_rows   rows into memory and back
change_writer   a batch becomes rows: page_writer, depth_writer, link_writer, frontier_writer
domain_sums     links summed up by domain
all_rows        every row of a map, for a copy in another engine
"""
