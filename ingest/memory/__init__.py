"""The part of the map that the ingest keeps in memory. No SQL, no files.

page_index   every known page in a few bytes: number, domain, depths, standing
lookup       the compiled part of finding pages by addresses, where there is one
map_rows     a page and a domain as rows, with what the last commit wrote
changes      everything that a batch did, for one commit
generations  a bounded cache
waiting_counts   waiting pages of each domain
"""
