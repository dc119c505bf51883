"""`sumi-ripple diff`: what changed from one run to another.

compare     two maps of single runs, row by row
run_changes PURE: the changes, as records
diff_views  PURE: for a terminal, as JSON, as CSV, as a section of the summary
"""
