"""The reporter: reads the map, writes for people and for other tools.

queries/          every statement that it asks of the map
survey            the figures of one run, gathered from queries
counting          PURE: rows become figures
figures           PURE: the figures as records; all outputs take theirs from here
error_categories  PURE: which errors are counted together
verdict           PURE: did the run reach anything?
escape            PURE: text from strangers, made harmless for the place where it is shown
stats             the figures on a terminal, or as JSON
summary/          the Markdown summary
explain/          the reasons for the state of one URL
export/           the map as GEXF, GraphML, CSV or JSON lines
map/              the domain map as one HTML page
"""
