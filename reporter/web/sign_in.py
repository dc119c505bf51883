"""Sign-in and sign-out: by a single-use link, or with the name and password of an account."""

from __future__ import annotations

import msgspec
from starlette.responses import HTMLResponse, RedirectResponse, Response

from reporter.web.guard import session_cookie
from reporter.web.page_files import page_text
from reporter.web.problems import Problem
from reporter.web.routing import Answer, Call
from reporter.web.web_accounts import OWNER, hasher, is_password

_PATIENCE = 5.0  # seconds to wait for a turn to hash
_unknown: list[str] = []  # the hash that a password is held against where there is no account: takes the same time


class Login(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    password: str


class EnterQuery(msgspec.Struct, forbid_unknown_fields=True):
    token: str = ""


def enter(call: Call) -> Response:
    """The single-use link."""
    if not call.query.token or not call.face.accounts.use_link(call.query.token):
        if "text/html" in call.headers.get("accept", ""):  # a person in a browser: the page says the same, with a form
            return HTMLResponse(page_text("", call.face.version), 401)
        raise Problem(
            401, "no-such-link", "this link was used already, or is too old; for another: sumi-ripple user link"
        )
    return _begun(call, OWNER, RedirectResponse("/", 303))


def login(call: Call) -> Response:
    face, wanted = call.face, call.body
    wait = face.limits.refuse_sign_in(wanted.name[:100])
    if wait is not None:
        detail = f"too many tries for this account; the next one may come in {wait} s"
        raise Problem(429, "too-many-sign-ins", detail, retry_after=wait)
    if not face.hashes.acquire(timeout=_PATIENCE):
        raise Problem(503, "busy", "too many people sign in just now", retry_after=5)
    try:
        account = face.accounts.find(wanted.name)
        is_right = is_password(account.password if account else _hash_of_nobody(), wanted.password)
    finally:
        face.hashes.release()
    if account is None or not is_right:
        raise Problem(401, "wrong-password", "the name or the password is wrong")
    content = {"v": 1, "kind": "me", "name": account.name, "role": account.role}
    return _begun(call, account.name, Response(msgspec.json.encode(content), media_type="application/json"))


def logout(call: Call) -> Response:
    call.face.sessions.end(call.visitor.session)
    return Response(status_code=204, headers={"Set-Cookie": session_cookie(call.face.binding, None)})


def me(call: Call) -> Answer:
    return Answer({"name": call.visitor.name or None, "role": call.visitor.role.word})


def _begun(call: Call, account: str, response: Response) -> Response:
    session_id = call.face.sessions.begin(account, old=call.visitor.session)
    response.headers.append("Set-Cookie", session_cookie(call.face.binding, session_id))
    return response


def _hash_of_nobody() -> str:
    if not _unknown:
        _unknown.append(hasher().hash("nobody has this password"))
    return _unknown[0]
