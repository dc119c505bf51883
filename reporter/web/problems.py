"""PURE. Errors of the API as problem details (RFC 9457)."""

from __future__ import annotations

from typing import Any

from crawler.model.errors import SumiError

TITLES = {
    400: "Bad request",
    401: "Sign in first",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "Too slow",
    409: "Conflict",
    413: "Too large",
    415: "Not JSON",
    421: "Wrong host",
    422: "Cannot be understood",
    429: "Too many calls",
    500: "Failed",
    503: "Not available now",
}


class Problem(SumiError):
    """A call that is answered with an error. `slug` names the kind and stays stable; `detail` is for people."""

    def __init__(self, status: int, slug: str, detail: str, *, retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.slug = slug
        self.detail = detail
        self.retry_after = retry_after

    def body(self) -> dict[str, Any]:
        return {
            "type": f"/problems/{self.slug}",
            "title": TITLES.get(self.status, "Failed"),
            "status": self.status,
            "detail": self.detail,
        }

    def headers(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
