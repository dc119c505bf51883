"""Every statement that the reporter asks of the map. The only room of the reporter with SQL.

rows           rows of the map, as queries return them
overview       runs, domains, and counts over all pages
domain_links   links summed up by domain
broken_links   links to gone, unreachable and permanently redirected pages
seeds          the seeds and the outcome of each
one_page       a page, its depths, and the pages that link to it
waiting_line   a page's place among the waiting pages of its domain
sample_pages   a few pages of each of some domains
export_rows    pages, links and domains that pass the filters of an export

Questions take a `MapReader` (`crawler.database.reader.open_map`), so all of a report is of one moment. They stay fast
on millions of pages: `pages` is scanned from end to end at most twice, `links` is only read forwards (a page's links
are one range of `links.id`), and sums by domain come from `domain_links`. None of them needs the ingest's
READING_INDEXES, which do not exist while a run is under way.
"""
