"""The HTML pages and the static files, both from this package.

Every page is `pages/frame.html` with its title and its ES module, which fills in the rest: `{{name}}` there is replaced
by escaped text. Static files are `static/…`, the renderer of the map is that of `reporter/map`.
"""

from __future__ import annotations

import re
from html import escape
from importlib.resources import files
from mimetypes import guess_type

from starlette.responses import Response

from reporter.web.problems import Problem

PAGES = {  # name in the address → title, module
    "": ("Dashboard", "dashboard"),
    "map": ("Map", "map"),
    "pages": ("Pages", "pages"),
    "page": ("Page", "page"),
    "domains": ("Domains", "domains"),
    "domain": ("Domain", "domain"),
    "curation": ("Curation", "curation"),
    "referrers": ("Pages that link to a page", "referrers"),
    "waiting": ("Domains that wait", "waiting"),
    "runs": ("Runs", "runs"),
    "run": ("Run", "run"),
    "log": ("Log", "log"),
    "diff": ("Changes", "diff"),
}
_SHARED = {"canvas_map.js": "reporter.map"}  # files of other packages, under static/
_PLACE = re.compile(r"\{\{([a-z_]+)\}\}")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*(\.[a-z0-9]+)*")
_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def page_text(name: str, version: str) -> str:
    """The HTML of a page. Raises Problem for one that there is not."""
    if name not in PAGES:
        raise Problem(404, "no-such-page", "there is no such page")
    title, module = PAGES[name]
    is_built = is_renderer_built()
    values = {"title": title, "module": module, "version": version, "built": "yes" if is_built else "no"}
    values["missing"] = "" if is_built else " · maps are drawn on a canvas; `make web` (needs node) adds WebGL"
    text = (files("reporter.web") / "pages" / "frame.html").read_text("utf-8")
    return _PLACE.sub(lambda place: escape(values[place[1]]), text)


def is_renderer_built() -> bool:
    """Has `make web` been run?"""
    return (files("reporter.web") / "static" / "built" / "sigma_map.js").is_file()


def static_file(path: str) -> Response:
    """A file under static/."""
    parts = path.split("/")
    place = files(_SHARED[path]) if path in _SHARED else files("reporter.web") / "static"
    for part in parts:
        if _NAME.fullmatch(part) is None:
            raise Problem(404, "no-such-file", "there is no such file")
        place = place / part
    if not place.is_file():
        raise Problem(404, "no-such-file", "there is no such file")
    content = place.read_bytes()
    suffix = f".{parts[-1].rpartition('.')[2]}"
    kind = _TYPES.get(suffix) or guess_type(parts[-1])[0] or "application/octet-stream"
    return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})
