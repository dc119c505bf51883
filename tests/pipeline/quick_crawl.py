"""`python -m tests.pipeline.quick_crawl my.toml [--next-run]`: a crawl with next to no delay, which no config file may
ask for. Everything served here is on loopback.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from crawler.config.load import load
from crawler.supervise.crawl import crawl
from reporter.summary.close import close_run

if __name__ == "__main__":
    config = load(Path(sys.argv[1]))
    hurried = replace(config, crawler=replace(config.crawler, minimum_time_on_page=1))
    sys.exit(crawl(replace(hurried, starts_next_run="--next-run" in sys.argv), close_run))
