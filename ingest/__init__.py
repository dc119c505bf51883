"""The ingest: the only writer of the map. Result logs in, one transaction a batch, hints to the scheduler out.

loop           the stage: reads batches from the result logs and commits them
apply          a batch of results becomes changes: states, links, depths
  links          hrefs become page numbers
  deciding       the state of a page (PURE rules in `rules/`)
  entering       known pages enter a new run in sets, without their rows
  spread         depths spread over the recorded links
  held           results that wait for the path to their page
  domain_events  requests, robots.txt and closures of a domain
memory/        the part of the map that is kept in memory: every page in a few bytes, the rows of a batch, its changes
ahead          indexes for readers are made in the last seconds of a run, while nothing else is to do
writing/       the changes become rows, together with the place in every result log
sqlite/, postgres/   the engines that hold the rows: a file, or a schema of PostgreSQL
replay         the same, from all result logs into a new map
upkeep/        results that are no longer wanted are removed

Imports go one way: rules, memory, writing and its engines, and then the modules of this folder.
"""
