"""The reporter: reads the map, writes for people and for other tools.

queries    every statement that it asks of the map
survey     the figures of one run, gathered from queries
figures    PURE: rows become figures; all outputs take theirs from here
escape     PURE: text from strangers, made harmless for where it is shown
stats      the figures on a terminal, or as JSON
summary/   the Markdown summary
explain/   why one URL is as it is
export/    the map as GEXF, GraphML, CSV or JSON lines
"""
