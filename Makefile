# Sumi-Ripple. `make help` lists what can be done; every target sets up what it needs by itself.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
WARC_VENV  := .venv-warc
WARC_STAMP := $(WARC_VENV)/.installed
# Twice quiet: pip warns about its own configuration of the machine; errors are still printed.
PIP    := $(BIN)/python -m pip --quiet --quiet --disable-pip-version-check
CONFIG ?=
WORKERS ?=

.DEFAULT_GOAL := help
.PHONY: help setup crawl serve test test-engine lint web test-web test-warc pictures bench bench-growth bench-hostile bench-reading bench-web torture fuzz fuzz-linear clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | \
	while IFS="$$(printf '\t')" read -r name text; do printf '  make %-14s %s\n' "$$name" "$$text"; done

setup: $(STAMP) ## make the environment in .venv (the command is .venv/bin/sumi-ripple)

# The stamp is touched last, so that an interrupted set-up is done again, and a finished one is not.
$(STAMP): pyproject.toml requirements/lock.txt crawler/visit/_scanner.c ingest/memory/_lookup.c
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Sumi-Ripple needs Python 3.11 or newer; set PYTHON=/path/to/python3.11 and run make again." >&2; exit 1; }
	@echo "Setting up .venv (once) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install -r requirements/lock.txt
	@rm -f crawler/visit/_scanner.*.so ingest/memory/_lookup.*.so
	@$(PIP) install --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q crawler ingest reporter
	@touch $(STAMP)

crawl: $(STAMP) ## crawl: the demo terrain, or your own list with CONFIG=my.toml [WORKERS=4]
	@$(BIN)/sumi-ripple $(if $(CONFIG),crawl "$(CONFIG)",demo) $(if $(WORKERS),--workers $(WORKERS))

serve: $(STAMP) ## open the web face: on the demo (crawled if need be), or on your own crawl with CONFIG=my.toml
	@$(BIN)/sumi-ripple serve $(if $(CONFIG),"$(CONFIG)",--demo) $(if $(PORT),--port $(PORT))

test: $(STAMP) ## run the tests
	@$(BIN)/python -m pytest -n 6 --dist loadgroup

test-engine: $(STAMP) ## try many more random terrains on PostgreSQL than make test does (EXAMPLES=100)
	@ENGINE_EXAMPLES=$(if $(EXAMPLES),$(EXAMPLES),100) $(BIN)/python -m pytest -n 2 tests/ingest/postgres tests/crawler/database

test-web: $(STAMP) ## try the web face in a browser (installs Playwright and axe-core; chromium where it may)
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get install -y -q chromium >/dev/null; } || \
	  { echo "make test-web needs Chromium; on Debian or Ubuntu: sudo apt-get install chromium" >&2; exit 1; }
	@$(PIP) install -r requirements/web-test.txt
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory web; \
	  else echo "npm is not there: the checks by axe-core and those of the WebGL renderer are skipped" >&2; fi
	@TEST_WEB=1 $(BIN)/python -m pytest -rs tests/reporter/web/test_face_in_browser.py tests/reporter/web/test_openapi.py

test-warc: $(STAMP) $(WARC_STAMP) ## open exported WARC files with pywb, the archive server (in .venv-warc)
	@$(BIN)/python -m pytest -rs tests/reporter/export/test_warc.py tests/reporter/export/test_pywb.py

$(WARC_STAMP): requirements/warc-test.txt
	@echo "Setting up .venv-warc (once) ..."
	@$(PYTHON) -m venv $(WARC_VENV)
	@$(WARC_VENV)/bin/python -m pip --quiet --quiet --disable-pip-version-check install -r requirements/warc-test.txt
	@touch $(WARC_STAMP)

web: ## build the optional WebGL renderer of the map (needs node; the face works without it)
	@command -v npm >/dev/null || { echo "make web needs node and npm; without them maps are drawn by Canvas2D" >&2; exit 1; }
	@npm ci --ignore-scripts --no-audit --no-fund --silent
	@node_modules/.bin/esbuild reporter/web/assets/sigma_map.js --bundle --format=esm --minify --log-level=warning \
	  --outfile=reporter/web/static/built/sigma_map.js
	@echo "Built reporter/web/static/built/sigma_map.js"

pictures: $(STAMP) ## take the pictures of README and docs from the demo (needs what test-web installs)
	@$(BIN)/python -m tests.reporter.web.take_pictures

lint: $(STAMP) ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: $(STAMP) ## measure real pages against a bare loop and Scrapy (QUICK=1 two minutes; SITES=dir,dir; ENGINE=postgresql)
ifeq ($(ENGINE),postgresql)
	@$(BIN)/python -m benchmarks.engine $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))
else
	@$(PIP) install -r requirements/bench.txt
	@$(BIN)/python -m benchmarks.pipeline $(if $(QUICK),--quick) $(if $(SITES),--sites "$(SITES)") \
	  $(if $(PEER_PAGES),--peer-pages $(PEER_PAGES)) $(if $(ONLY),--only $(ONLY)) $(if $(PROFILE),--profile)
endif

bench-growth: $(STAMP) ## measure ingest, scheduler, restart and report as the map grows (QUICK=1 for a small one)
	@$(BIN)/python -m benchmarks.growth $(if $(QUICK),--quick)

bench-hostile: $(STAMP) ## measure honest sites beside hostile ones against honest sites alone (four minutes)
	@$(BIN)/python -m benchmarks.hostile_sites $(if $(ONLY),--only "$(ONLY)")

bench-reading: $(STAMP) ## measure what reading a page costs, step by step (SITES="dir dir")
	@$(BIN)/python -m benchmarks.reading $(SITES)

bench-web: $(STAMP) ## measure the web face with 20 clients on a map of 3 million pages (QUICK=1: 100,000; CRAWL=1)
	@$(BIN)/python -m benchmarks.web_load $(if $(QUICK),--pages 100000 --domains 3000 --seconds 15 --idle 10) $(if $(CRAWL),--crawl)

torture: $(STAMP) ## kill the pipeline hundreds of times, compare the maps (OUTAGES=1 [LONGEST=100], DISCOVERY=1, RELOADS=1, REVISITS=1; ENGINE=postgresql: machines, SEED=7, FAILOVERS=1)
ifeq ($(ENGINE),postgresql)
	@$(BIN)/python -m tests.torture.machines $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SEED),--seed $(SEED)) \
	  $(if $(FAILOVERS),--failovers)
else
	@$(BIN)/python -m tests.torture.run $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(OUTAGES),--outages) \
	  $(if $(LONGEST),--longest $(LONGEST)) $(if $(DISCOVERY),--discovery) $(if $(RELOADS),--reloads) \
	  $(if $(REVISITS),--revisits)
endif

fuzz: $(STAMP) ## random input for every reader of strangers' bytes (SECONDS=60, SEED=0)
	@$(BIN)/python -m tests.fuzz.run $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED))

fuzz-linear: $(STAMP) ## CPU of every reader of strangers' bytes at 1, 2 and 4 MB of its worst input (two minutes)
	@$(BIN)/python -m tests.fuzz.linear

clean: ## remove the environment and caches (never your workspace or databases)
	@rm -rf $(VENV) $(WARC_VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis crawler/visit/_scanner.*.so \
	  ingest/memory/_lookup.*.so
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
