"""The map as a file for other tools.

graph    the export: checks, files
levels   nodes and edges, by page or by domain
formats  PURE: GEXF, GraphML, CSV, JSON lines
parquet  two Parquet files, where pyarrow is installed
"""
