"""The map in levels, as data for a browser: each level is small enough to draw, whatever the size of the map.

domain_level      the most linked domains and the links between them, with places that stay
community_level   PURE: communities of domains, from the level of domains
page_level        the pages of one domain, the surroundings of a page, the paths to it
behind_links      the page links behind a link between two domains
run_difference    PURE: two levels of domains as one, with what is new and what vanished

A level is a dictionary for JSON in the shape that `reporter/map/canvas_map.js` draws: `classes`, `counts` (shown and
known), `nodes` (a list for each figure) and `links` (from, to and number, one after the other).
"""
