"""Why is this URL as it is in the map, and what would have to change for it to be crawled?"""
