"""The Markdown summary of a run.

write     the file
markdown  PURE: figures become Markdown
"""
