"""`sumi-ripple explain`: the reasons for a URL's state in the map, and the changes that would make it crawled.

explanation    gathers the facts
domain_explanation, domain_facts   the same for a whole domain
facts          PURE: the facts, as records; text and JSON
shortest_path  a path of followed links to the page
config_lines   the line of the config file that lists a domain
remedies       advice
turn           PURE: the run in which a page that waits may be visited
wording        PURE: the facts in words
"""
