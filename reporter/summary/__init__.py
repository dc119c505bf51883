"""The Markdown summary of a run."""
