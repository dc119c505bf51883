"""The Markdown summary of a run.

close     the end of a run: its summaries, and the last words of the crawl
write     one file
markdown  PURE: figures become Markdown
ending    PURE: figures become the last words
"""
