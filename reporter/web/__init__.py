"""The web face: pages for people and an API for programs, on the map and the crawl. One process, no writer of the map.

routing        a row of the route table, a call, an answer
route_table    every path with its role, its limit, its shapes: routing, rights and /openapi.json come from it
web_app        the app for a config: make_app(Face) -> ASGI
guard          before every handler: Host, origin, session, limit, role; after it: headers
problems       errors as RFC 9457 problem details
web_accounts   accounts, bearer tokens and single-use links, in workspace/web/
web_sessions   who is signed in
call_limits    calls a minute
live_figures   the live figures, sampled while somebody looks, as a stream or one at a time
page_files     the HTML pages and static files
openapi        the route table as an OpenAPI document
web_server     uvicorn around the app
warming        after a run: figures and search index, before somebody asks
wire_protocol  what is no HTTP is answered with problem details, too

A page is `pages/frame.html` with its title and its ES module (`page_files.PAGES`): there is no template engine.
Everything that a page shows comes as JSON from `/api/…` and is put in by the modules in `static/` as text nodes
(`dom.js`). No inline script or style: the Content-Security-Policy forbids both.

Reads go through the map's reading door and the workspace's. Writes are flag files, edits of the config, and orders
that the stages carry out.
"""
