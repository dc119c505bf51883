"""A crawl as a whole: its stages are started, watched, restarted and stopped."""
