"""The route table: every path with its method, handler, role, limit and shapes. A row works, or is not here.

Routing (`web_app`), rights and limits (`guard`) and /openapi.json (`openapi`) come from these rows; docs/api.md tells
them in words, and a test calls every row as every role.
"""

from __future__ import annotations

from starlette.responses import Response

from reporter.web import (
    content_api,
    control_api,
    crawl_api,
    curate_api,
    export_api,
    hook_api,
    live_api,
    map_api,
    order_api,
    page_api,
    sign_in,
    stored_api,
)
from reporter.web.openapi import document
from reporter.web.routing import Bucket, Call, Role, Route

_MAP = (404, 503)  # there is no map yet, or it cannot be read now
ANYBODY, USER, ADMIN = Role.ANONYMOUS, Role.USER, Role.ADMIN


def _openapi(call: Call) -> Response:
    return document(ROUTES, call.face.version)


ROUTES: tuple[Route, ...] = (
    # -- the server itself
    Route("GET", "/health", live_api.health, ANYBODY, "Is the server up?", "health", bucket=Bucket.WATCH),
    Route("GET", "/openapi.json", _openapi, ANYBODY, "This table as an OpenAPI document", bucket=Bucket.FILES),
    Route(
        *("GET", "/metrics", live_api.metrics, USER, "The figures of the crawl for Prometheus"),
        bucket=Bucket.WATCH,
        media_type="text/plain",
    ),
    # -- sign-in
    Route(
        *("GET", "/enter", sign_in.enter, ANYBODY, "Sign the owner in by a single-use link"),
        bucket=Bucket.SIGN_IN,
        query=sign_in.EnterQuery,
        status=303,
        media_type="",
        problems=(401,),
    ),
    Route(
        *("POST", "/api/auth/login", sign_in.login, ANYBODY, "Sign in with an account", "me"),
        bucket=Bucket.SIGN_IN,
        body=sign_in.Login,
        problems=(401, 503),
    ),
    Route("POST", "/api/auth/logout", sign_in.logout, ANYBODY, "Sign out", status=204, media_type=""),
    Route("GET", "/api/auth/me", sign_in.me, ANYBODY, "Who am I?", "me", bucket=Bucket.FILES),
    # -- live figures
    Route("GET", "/api/live", live_api.live, USER, "The live figures, once", "live", bucket=Bucket.WATCH),
    Route(
        *("GET", "/api/stream", live_api.stream, USER, "The live figures as server-sent events"),
        bucket=Bucket.WATCH,
        media_type="text/event-stream",
        problems=(503,),
    ),
    # -- figures
    Route(
        *("GET", "/api/stats", map_api.stats, ANYBODY, "The figures of the run, as counts", "stats"),
        query=map_api.StatsQuery,
        problems=_MAP,
    ),
    Route(
        *("GET", "/api/stats/timeseries", crawl_api.timeseries, USER, "Rates over time", "timeseries"),
        query=crawl_api.SeriesQuery,
    ),
    # -- the frontier
    Route(
        *("GET", "/api/frontier/waiting", crawl_api.waiting, USER, "Domains that wait, and why", "waiting"),
        query=crawl_api.WaitingQuery,
        problems=(409, 503),
    ),
    Route(
        *("GET", "/api/frontier/stats", page_api.frontier_stats, USER, "How much waits", "frontier-stats"),
        problems=_MAP,
    ),
    Route(
        *("GET", "/api/frontier/urls", page_api.frontier_urls, USER, "Pages that wait", "frontier-urls"),
        query=page_api.FrontierQuery,
        problems=_MAP,
    ),
    Route(
        *("POST", "/api/frontier/add", order_api.add, ADMIN, "Visit these pages in the run", "order"),
        body=order_api.Pages,
        status=202,
        problems=(409,),
    ),
    Route(
        *("POST", "/api/frontier/seed", order_api.seed, ADMIN, "Visit these pages before others", "order"),
        bucket=Bucket.SEEDS,
        body=order_api.Pages,
        status=202,
        problems=(409,),
    ),
    Route(
        *("GET", "/api/frontier/preview", order_api.clear_preview, USER, "What clearing takes off", "clear-preview"),
        problems=_MAP,
    ),
    Route(
        *("DELETE", "/api/frontier", order_api.clear, ADMIN, "Take everything off the frontier", "order"),
        query=order_api.ClearQuery,
        status=202,
        problems=(409, 503),
    ),
    Route(
        *("POST", "/api/frontier/recover", order_api.recover, ADMIN, "Hand jobs of dead fetchers back", "recovered"),
        problems=(409,),
    ),
    Route(
        *("POST", "/api/admin/domains/{domain}/reset", order_api.reset_domain, ADMIN, "Ask a domain again", "order"),
        status=202,
        problems=(404, 409, 503),
    ),
    # -- deletion of stored pages
    Route(
        *("GET", "/api/admin/pages/preview", stored_api.forget_preview, USER, "What would be deleted"),
        kind="forget-preview",
        query=stored_api.StoredQuery,
        problems=(409, 503),
    ),
    Route(
        *("DELETE", "/api/admin/pages", stored_api.forget_pages, ADMIN, "Delete stored pages", "forgotten"),
        query=stored_api.ForgetQuery,
        problems=(409, 503),
    ),
    # -- the map
    Route(
        *("GET", "/api/pages", page_api.pages, USER, "Pages by filters, and by words", "pages"),
        query=page_api.PagesQuery,
        problems=(*_MAP, 409),
    ),
    Route(
        *("GET", "/api/pages/content", content_api.content, USER, "A stored page as text", "page-content"),
        query=content_api.ContentQuery,
        problems=(*_MAP, 409),
    ),
    Route(
        *("GET", "/api/pages/referrers", page_api.referrers, USER, "The pages that link to a page", "referrers"),
        query=page_api.ReferrersQuery,
        problems=_MAP,
    ),
    Route(
        *("GET", "/api/domains", map_api.domains, USER, "Domains with their figures", "domains"),
        query=map_api.DomainsQuery,
        problems=_MAP,
    ),
    Route(
        *("GET", "/api/domains/{domain}/robots", map_api.robots, USER, "robots.txt as it was last read", "robots"),
        problems=_MAP,
    ),
    Route("GET", "/api/runs", map_api.runs, USER, "The runs with their figures", "runs", problems=_MAP),
    Route(
        *("GET", "/api/runs/{run}/summary", map_api.summary, USER, "The Markdown summary of a run"),
        media_type="text/markdown",
        problems=_MAP,
    ),
    Route(
        *("GET", "/api/diff", map_api.diff, USER, "What changed from one run to another", "diff"),
        query=map_api.DiffQuery,
        problems=(*_MAP, 409),
    ),
    Route(
        *(
            "GET",
            "/api/explain",
            map_api.explain,
            USER,
            "Why a page or a domain is as it is",
            "explanation|domain-explanation",
        ),
        query=map_api.ExplainQuery,
        problems=(*_MAP, 409),
    ),
    Route(
        *("GET", "/api/candidates", map_api.candidates, USER, "Domains that may deserve a place", "candidates"),
        query=map_api.CandidatesQuery,
        problems=(*_MAP, 409),
    ),
    Route(
        *("GET", "/api/links/mending", map_api.mending, USER, "Links that are worth mending", "mending"),
        query=map_api.RunQuery,
        problems=(*_MAP, 409),
    ),
    Route(
        *("GET", "/api/graph", map_api.graph, USER, "A level of the map", "graph"),
        query=map_api.GraphQuery,
        problems=(*_MAP, 409),
    ),
    Route(
        *("GET", "/api/graph/links", map_api.graph_links, USER, "The page links behind a link", "graph-links"),
        query=map_api.LinksQuery,
        problems=(*_MAP, 409),
    ),
    # -- files
    Route("GET", "/api/exports", export_api.exports, USER, "The files that can be had", "exports"),
    Route(
        *("GET", "/api/export/diff.csv", export_api.diff_table, USER, "The changes between two runs as CSV"),
        query=map_api.DiffQuery,
        media_type="text/csv",
        problems=(*_MAP, 409),
    ),
    Route(
        *("GET", "/api/export/{file}", export_api.export_table, USER, "A table as CSV, or the map as a file"),
        query=export_api.ExportQuery,
        media_type="*/*",
        problems=(*_MAP, 409),
    ),
    # -- curation
    Route(
        *("POST", "/api/curate/preview", curate_api.preview, ADMIN, "What a decision would change", "preview"),
        body=curate_api.Curation,
        problems=(409, 503),
    ),
    Route(
        *("POST", "/api/curate", curate_api.curate, ADMIN, "Write a decision into the config", "curated"),
        body=curate_api.Curation,
        problems=(409,),
    ),
    Route(
        *("POST", "/api/curate/undo", curate_api.take_back, ADMIN, "Undo the newest decision", "undone"),
        body=curate_api.Undo,
        problems=(409,),
    ),
    Route("GET", "/api/curate/log", curate_api.curation_log, USER, "Decisions that can be undone", "curation-log"),
    # -- control
    Route(
        *("POST", "/api/control", control_api.control, ADMIN, "Pause, resume, stop or reload", "control"),
        body=control_api.Control,
        problems=(409,),
    ),
    Route(
        *("GET", "/api/log", control_api.write_log, USER, "What was changed, by whom", "log"),
        query=control_api.LogQuery,
    ),
    # -- hooks
    Route("GET", "/api/hooks", hook_api.deliveries, USER, "What hooks sent", "hooks", problems=(409,)),
    Route(
        *("POST", "/api/hooks/{number}/resend", hook_api.resend, ADMIN, "Send a delivery again", "resent"),
        status=202,
        problems=(404, 409, 503),
    ),
    # -- pages and static files; last, because a page's name matches much
    Route(
        *("GET", "/static/{path:path}", live_api.static, ANYBODY, "A static file"),
        bucket=Bucket.FILES,
        media_type="*/*",
        problems=(404,),
    ),
    Route("GET", "/", live_api.front_page, ANYBODY, "The dashboard", bucket=Bucket.FILES, media_type="text/html"),
    Route(
        *("GET", "/{page}", live_api.page, ANYBODY, "A page of the face"),
        bucket=Bucket.FILES,
        media_type="text/html",
        problems=(404,),
    ),
)
