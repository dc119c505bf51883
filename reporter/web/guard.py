"""Before every handler: whose call is this, and may it pass? The order is Host, session, origin, limit, role.

Host is checked first, so that a name that somebody points at this machine (DNS rebinding) reaches nothing. A browser
tells where a call comes from (Sec-Fetch-Site, or Origin): a call that changes something must come from a page of this
server. Programs tell neither, and must not come with a cookie.
"""

from __future__ import annotations

from collections.abc import Mapping

from reporter.web.call_limits import address_key
from reporter.web.face import Binding, Face
from reporter.web.problems import Problem
from reporter.web.routing import Bucket, Role, Route
from reporter.web.web_accounts import role_of
from reporter.web.web_sessions import SESSION_SECONDS, Visitor

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


def require_own_host(binding: Binding, host: str) -> None:
    if host.lower() not in binding.hosts:
        raise Problem(421, "wrong-host", "this server does not answer under that name; use the address it printed")


def require_own_origin(binding: Binding, headers: Mapping[str, str], *, by_cookie: bool) -> None:
    """For calls that change something."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        is_own = site == "same-origin"
    elif origin is not None:
        is_own = origin.lower() == f"{binding.scheme}://{headers.get('host', '').lower()}"
    else:
        is_own = not by_cookie
    if not is_own:
        raise Problem(403, "foreign-origin", "a call that changes something must come from a page of this server")


def visitor_of(face: Face, headers: Mapping[str, str], cookies: Mapping[str, str], address: str) -> Visitor:
    """Who calls. Raises Problem for a bearer token that is none."""
    key = address_key(address)
    given = headers.get("authorization")
    if given is not None:
        word, _, token = given.partition(" ")
        found = face.accounts.by_token(token.strip()) if word.lower() == "bearer" else None
        if found is None:
            _count(face, Bucket.SIGN_IN, Visitor(address=key))  # guesses are throttled like passwords
            raise Problem(401, "no-such-token", "the bearer token is not known; make one: sumi-ripple user token NAME")
        account, given_token = found
        return Visitor(account.name, role_of(account.role), key, given_token.hash)
    session_id = cookies.get(face.binding.cookie)
    known = face.sessions.visitor(session_id, key) if session_id else None
    return known or Visitor(address=key)


def admit(face: Face, route: Route, visitor: Visitor, headers: Mapping[str, str]) -> None:
    """Raises Problem unless this visitor may make this call now."""
    if route.is_write:
        require_own_origin(face.binding, headers, by_cookie=visitor.by_cookie)
    _count(face, route.bucket, visitor)
    if visitor.role >= route.role:
        return
    if visitor.role is Role.ANONYMOUS:
        raise Problem(401, "sign-in", "sign in first: by the link that `sumi-ripple serve` printed, or with an account")
    raise Problem(
        403, "role", f"this is for the role {route.role.word}; {visitor.name} has the role {visitor.role.word}"
    )


def _count(face: Face, bucket: Bucket, visitor: Visitor) -> None:
    who = f"address:{visitor.address}" if bucket is Bucket.SIGN_IN else visitor.key
    wait = face.limits.refuse(bucket, visitor.role, who)
    if wait is not None:
        detail = f"too many calls in a minute; the next one may come in {wait} s"
        raise Problem(429, "too-many-calls", detail, retry_after=wait)


def session_cookie(binding: Binding, session_id: str | None) -> str:
    """The Set-Cookie that begins a session, or ends it (None)."""
    age = SESSION_SECONDS if session_id else 0
    secure = "; Secure" if binding.is_tls else ""
    return f"{binding.cookie}={session_id or ''}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}"
