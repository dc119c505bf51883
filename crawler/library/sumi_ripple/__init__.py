"""Sumi-Ripple from Python: crawl in this process, and look at the map.

    import sumi_ripple

    map = sumi_ripple.crawl("my.toml")
    for page in map.pages(state="dead_link"):
        print(page["url"], page["error_message"])

`sumi_ripple.Map("sumi-ripple.db")` is a handle on a map that is there already. The code is in
`crawler.cli.python_call` and `crawler.database.map_handle`; this package gives it the name of the program.
"""

from crawler.cli.python_call import crawl
from crawler.config.load import ConfigError
from crawler.database.map_handle import Map
from crawler.model.errors import SumiError

__all__ = ["ConfigError", "Map", "SumiError", "crawl"]
