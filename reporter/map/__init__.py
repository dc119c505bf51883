"""The domain map as one HTML page that needs no server and no network.

communities   PURE: domains that link to each other more than to the rest
placement     PURE: a place for every domain
kept_places   PURE: places that stay from run to run
layout_file   the places, kept beside the database
map_data      the domains, links, figures and sample pages that the page shows
map_page      the page: template, style, scripts and data in one file
canvas_map.js, map_page.js, map_page.css, map_page.html   the page's own parts, without third-party code
"""
