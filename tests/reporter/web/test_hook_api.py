"""The log of deliveries, and a delivery once more."""

from __future__ import annotations

import threading
from pathlib import Path

from crawler.hooks.outbox import Outbox
from reporter.web.routing import Role
from tests.crawler.hooks.receiving import receiving
from tests.reporter.web.serving import CONFIG, served


def sent() -> None:
    """Until the threads that send have ended."""
    for thread in threading.enumerate():
        if thread.name == "hooks":
            thread.join(60)


def test_a_delivery_is_listed_and_sent_again_by_an_admin(tmp_path: Path) -> None:
    hook = '[[hook]]\nname = "here"\nurl = "http://hook.test/in"\nsecret = "a secret of 16 and more"\n'
    hook += 'events = ["run-finished"]\n'
    network = '[network.resolve]\n"hook.test" = "127.0.0.1:PORT"\n'
    with (
        receiving() as (port, got),
        served(tmp_path, config=f"{CONFIG}\n{hook}{network.replace('PORT', str(port))}") as face,
    ):
        face.face.workspace.prepare()
        admin, user = face.token(Role.ADMIN), face.token(Role.USER)
        assert face.get("/api/hooks", token=user).json()["deliveries"] == []
        outbox = Outbox(face.face.workspace)
        (made,) = outbox.put(face.face.config.hooks, "test", {"words": "a test"})
        listed = face.get("/api/hooks", token=user)
        assert "a secret" not in listed.text and "hook.test" not in listed.text
        assert [(each["state"], each["body"]["words"]) for each in listed.json()["deliveries"]] == [
            ("pending", "a test")
        ]
        for count in (1, 2):
            answer = face.post(f"/api/hooks/{made.number}/resend", token=admin)
            assert (answer.status_code, answer.json()["delivery"]["state"]) == (202, "pending")
            sent()
            assert (
                outbox.deliveries()[0].state == "delivered" and len(got) == count and got[-1][1] == made.body.encode()
            )
        assert face.post(f"/api/hooks/{made.number}/resend", token=user).status_code == 403
        assert face.post("/api/hooks/99/resend", token=admin).status_code == 404
        assert face.post("/api/hooks/x/resend", token=admin).status_code == 404
        (tmp_path / "my.toml").write_text(CONFIG)
        assert face.post(f"/api/hooks/{made.number}/resend", token=admin).status_code == 409
