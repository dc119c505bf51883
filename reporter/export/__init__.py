"""The map as a file for other tools.

graph    the export: checks, files
levels   nodes and edges, by page or by domain
formats  PURE: GEXF, GraphML, CSV, JSON lines
warc     stored pages for web archives, with their index; warc_records is PURE: the records themselves
parquet  two Parquet files, where pyarrow is installed
"""
