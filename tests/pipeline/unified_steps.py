"""A Python program that uses Sumi-Ripple as a library: crawls, and prints what the handle on the map says."""

from __future__ import annotations

import json
import sys

import sumi_ripple

if __name__ == "__main__":
    found = sumi_ripple.crawl(sys.argv[1], workspace=sys.argv[2])
    gone = [page["url"] for page in found.pages(state="dead_link", domain="tea-almanac.test")]
    linked = [link["to_url"] for link in found.links(from_url="https://tea-almanac.test/")]
    said = {"code": found.exit_code, "digest": found.digest(), "run": found.run(), "states": found.states()}
    print(json.dumps(said | {"gone": gone, "linked": linked, "is_complete": found.is_complete}))
