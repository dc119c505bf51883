"""The ingest: the only writer of the map. Result logs in, one transaction a batch, hints to the scheduler out.

loop       the stage: reads batches from the result logs and commits them
apply      a batch of results becomes changes: states, links, depths (PURE rules in `rules/`)
links      hrefs become page numbers
page_index every known page in a few bytes of memory
sqlite/    the changes become rows, together with the place in every result log
replay     the same, from all result logs into a new map
upkeep/    what is no longer wanted is removed
"""
