"""What a crawl leaves, kept over time: copied and brought back, measured, and let go when its time is over.

manifest      what a backup says of itself, and the checksums of its files
backup        a copy of map, results, gates, logs and config while the crawl goes on; and its verification
restore       the same crawl in another folder: the digest is the same, and it goes on
named_files   the files that a config names, and the config with other paths
prune         what may go by [retention], its figures rolled up first
old_blobs     the same for stored pages
archive       visits before a date as compressed tables, and back into a database
read_again    stored pages read again with today's code and rules
storage       the size of every part, its growth, and the day on which the disk will be full
"""
