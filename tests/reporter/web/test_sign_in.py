"""Links, passwords, tokens and sessions."""

from __future__ import annotations

import json
import stat

import pytest

from reporter.web.routing import Role
from reporter.web.web_accounts import LINK_SECONDS, OWNER, AccountError, WebAccounts
from reporter.web.web_sessions import SESSION_SECONDS, WebSessions
from tests.reporter.web.serving import PASSWORD, Served


def test_a_link_signs_the_owner_in_once(face: Served) -> None:
    token = face.face.accounts.add_link()
    first = face.get(f"/enter?token={token}")
    assert (first.status_code, first.headers["Location"]) == (303, "/")
    cookie = first.cookies[face.face.binding.cookie]
    assert face.get("/api/auth/me", cookie=cookie).json() == {"v": 1, "kind": "me", "name": OWNER, "role": "admin"}
    assert face.get(f"/enter?token={token}").status_code == 401
    assert face.get("/enter?token=").status_code == 401


def test_a_link_is_valid_for_a_quarter_of_an_hour(face: Served) -> None:
    now = [1000.0]
    accounts = WebAccounts(face.face.workspace, face.face.first_config.workspace, lambda: now[0])
    early, late = accounts.add_link(), accounts.add_link()
    now[0] += LINK_SECONDS - 1
    assert accounts.use_link(early)
    now[0] += 1
    assert not accounts.use_link(late)


def test_an_account_signs_in_with_its_password_alone(face: Served) -> None:
    face.face.accounts.add("ada", Role.USER, PASSWORD)
    assert face.post("/api/auth/login", json={"name": "ada", "password": "wrong"}).status_code == 401
    assert face.post("/api/auth/login", json={"name": "nobody", "password": PASSWORD}).status_code == 401
    assert face.post("/api/auth/login", json={"name": OWNER, "password": PASSWORD}).status_code == 401
    answer = face.post("/api/auth/login", json={"name": "ada", "password": PASSWORD})
    assert answer.json() == {"v": 1, "kind": "me", "name": "ada", "role": "user"}
    cookie = answer.cookies[face.face.binding.cookie]
    assert face.get("/api/live", cookie=cookie).status_code == 200
    out = face.post("/api/auth/logout", cookie=cookie, headers={"Sec-Fetch-Site": "same-origin"})
    assert out.status_code == 204
    assert face.get("/api/live", cookie=cookie).status_code == 401


def test_a_session_gets_another_id_at_every_sign_in(face: Served) -> None:
    face.face.accounts.add("bob", Role.USER, PASSWORD)
    first = face.entered()
    login = {"name": "bob", "password": PASSWORD}
    answer = face.post("/api/auth/login", json=login, cookie=first, headers={"Sec-Fetch-Site": "same-origin"})
    second = answer.cookies[face.face.binding.cookie]
    assert second != first
    assert face.get("/api/live", cookie=first).status_code == 401, "the session before has ended"


def test_a_session_gets_another_id_when_its_role_changes(face: Served) -> None:
    face.face.accounts.add("cleo", Role.USER, PASSWORD)
    old = face.post("/api/auth/login", json={"name": "cleo", "password": PASSWORD}).cookies[face.face.binding.cookie]
    face.face.accounts.set_role("cleo", Role.ADMIN)
    answer = face.get("/api/auth/me", cookie=old)
    new = answer.cookies[face.face.binding.cookie]
    assert (answer.json()["role"], new == old) == ("admin", False)
    assert face.get("/api/live", cookie=old).status_code == 401
    assert face.get("/api/live", cookie=new).status_code == 200


@pytest.mark.parametrize("change", ["password", "remove"])
def test_a_session_ends_with_its_password_or_account(face: Served, change: str) -> None:
    accounts = face.face.accounts
    accounts.add("dora", Role.USER, PASSWORD)
    cookie = face.post("/api/auth/login", json={"name": "dora", "password": PASSWORD}).cookies[face.face.binding.cookie]
    if change == "password":
        accounts.set_password("dora", "another " + PASSWORD)
    accounts.remove("dora") if change == "remove" else None
    assert face.get("/api/live", cookie=cookie).status_code == 401
    if change == "password":
        accounts.remove("dora")


def test_a_session_ends_after_a_day_and_survives_a_restart_before(face: Served) -> None:
    now = [1000.0]
    root = face.face.first_config.workspace.parent / "elsewhere"
    sessions = WebSessions(root, face.face.accounts, lambda: now[0])
    session = sessions.begin(OWNER)
    now[0] += SESSION_SECONDS - 1
    assert WebSessions(root, face.face.accounts, lambda: now[0]).visitor(session, "") is not None
    now[0] += 1
    assert sessions.visitor(session, "") is None


def test_a_token_is_for_scripts_and_ends_with_its_account(face: Served) -> None:
    accounts = face.face.accounts
    accounts.add("eve", Role.USER, PASSWORD)
    token = accounts.add_token("eve", "script")
    assert face.get("/api/auth/me", token=token).json()["name"] == "eve"
    assert face.get("/api/live", token=token + "x").status_code == 401
    accounts.remove("eve")
    assert face.get("/api/live", token=token).status_code == 401


def test_no_secret_is_kept_and_the_files_are_their_owners(face: Served) -> None:
    accounts = face.face.accounts
    accounts.add("finn", Role.ADMIN, PASSWORD)
    secrets = [PASSWORD, accounts.add_token("finn", "script"), accounts.add_link(), face.entered()]
    folder = face.face.first_config.workspace / "web"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert not [secret for secret in secrets if secret in path.read_text()]
    kept = json.loads((folder / "accounts.json").read_text())
    assert next(each["password"] for each in kept["accounts"] if each["name"] == "finn").startswith("$argon2id$")


@pytest.mark.parametrize("name", ["", "Ada", "a b", "../x", OWNER, "x" * 65, "-x"])
def test_a_name_that_is_none_is_refused(face: Served, name: str) -> None:
    with pytest.raises(AccountError):
        face.face.accounts.add(name, Role.USER, PASSWORD)


def test_a_short_password_is_refused(face: Served) -> None:
    with pytest.raises(AccountError, match="10 to"):
        face.face.accounts.add("gus", Role.USER, "short")


def test_tries_for_one_account_are_throttled_wherever_they_come_from(fresh: Served) -> None:
    codes = [fresh.post("/api/auth/login", json={"name": "ada", "password": "x"}).status_code for _ in range(6)]
    assert codes == [401] * 5 + [429]


def test_tries_from_one_address_are_throttled(fresh: Served) -> None:
    answers = [fresh.get(f"/enter?token=guess{number}") for number in range(11)]
    assert [answer.status_code for answer in answers] == [401] * 10 + [429]
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60


def test_hashes_in_flight_are_bounded(face: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reporter.web.sign_in._PATIENCE", 0.01)
    taken = 0
    while face.face.hashes.acquire(blocking=False):
        taken += 1
    try:
        answer = face.post("/api/auth/login", json={"name": "ada", "password": PASSWORD})
    finally:
        face.face.hashes.release(taken)
    assert (answer.status_code, answer.json()["type"], taken) == (503, "/problems/busy", 2)
