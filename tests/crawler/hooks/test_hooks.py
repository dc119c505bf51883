"""Hooks: written down first, signed, retried within bounds, never redirected, never to an address that is refused."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import responses
from responses.registries import OrderedRegistry

from crawler.config.load import load
from crawler.hooks import delivery
from crawler.hooks.delivery import HookSender
from crawler.hooks.hook_message import mail_of
from crawler.hooks.outbox import KEPT, Outbox
from crawler.model.settings import Config, HookRule, NetworkSettings
from crawler.observe.alert_state import read_alerts
from crawler.resilience.alert_rules import BACKLOG, Sample
from crawler.supervise.alert_watch import AlertWatch
from crawler.supervise.crawl import tell_end
from crawler.supervise.exit_rules import Outcome
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.runs import Run, RunStatus, write_run
from tests.crawler.hooks.receiving import receiving

SECRET = "a secret of the test"
EVENTS = ("run-finished", "alert-raised", "alert-cleared")
ANYWHERE = NetworkSettings(resolve=(("*", "127.0.0.1:9"),))  # `responses` answers before anything is connected


@pytest.fixture
def workspace(tmp_path: Path) -> FileWorkspace:
    found = FileWorkspace(tmp_path / "workspace")
    found.prepare()
    return found


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_BACKOFF", 0)


def config(url: str = "https://hook.test/x", network: NetworkSettings = ANYWHERE, **rule: object) -> Config:
    hook = HookRule("receiver", EVENTS, url=url, secret=SECRET)
    return Config(hooks=(replace(hook, **rule),), network=network)  # type: ignore[arg-type]


def answers(*codes: int) -> None:
    for code in codes:
        responses.post("https://hook.test/x", status=code, headers={"Location": "https://elsewhere.test/"})


@responses.activate(registry=OrderedRegistry)
def test_server_errors_are_retried_and_the_delivery_is_logged(workspace: FileWorkspace) -> None:
    answers(503, 429, 200)
    sender = HookSender(config(), workspace)
    sender.tell("run-finished", {"run": 1, "words": "done"})
    sender.finish()
    (done,) = Outbox(workspace).deliveries()
    assert (done.state, done.answer, done.attempts, len(responses.calls)) == ("delivered", "200", 1, 3)
    assert json.loads(done.body) | {"at": ""} == {
        "v": 1,
        "kind": "hook",
        "event": "run-finished",
        "delivery": 1,
        "at": "",
        "run": 1,
        "words": "done",
    }


@responses.activate(registry=OrderedRegistry)
def test_retries_are_bounded_and_what_is_left_waits_for_the_next_start(workspace: FileWorkspace) -> None:
    answers(*[500] * (1 + delivery.RETRIES), 200)
    Outbox(workspace).put(config().hooks, "run-finished", {})
    (left,) = HookSender(config(), workspace).send_pending()
    assert (left.state, left.attempts) == ("pending", 1)
    (done,) = HookSender(config(), workspace).send_pending()
    assert (done.state, done.attempts) == ("delivered", 2)


@responses.activate(registry=OrderedRegistry)
def test_no_redirect_is_followed_and_a_refusal_is_final_until_it_is_sent_again(workspace: FileWorkspace) -> None:
    answers(302, 403, 200)
    outbox, sender = Outbox(workspace), HookSender(config(), workspace)
    for expected in ("302", "403"):
        outbox.put(config().hooks, "run-finished", {})
        assert [(each.state, each.answer) for each in sender.send_pending()] == [("failed", expected)]
    assert outbox.again(99) is None
    assert outbox.again(2) is not None
    assert [(each.number, each.state) for each in sender.send_pending()] == [(2, "delivered")]
    assert [call.request.url for call in responses.calls] == ["https://hook.test/x"] * 3


def test_events_that_a_hook_does_not_want_are_not_written_and_the_log_is_bounded(workspace: FileWorkspace) -> None:
    outbox = Outbox(workspace)
    assert outbox.put(config().hooks, "outage-begun", {}) == []
    for _ in range(KEPT + 5):
        outbox.put(config().hooks, "run-finished", {})
    assert [outbox.deliveries()[index].number for index in (0, -1)] == [6, KEPT + 5]
    workspace.write_document("hooks", b"not JSON")
    assert outbox.deliveries() == []


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/", "http://169.254.169.254/latest", "http://[::1]:1/", "http://10.0.0.1/"]
)
def test_an_address_that_is_not_public_is_refused_before_anything_is_sent(workspace: FileWorkspace, url: str) -> None:
    asked = config(url, NetworkSettings())
    Outbox(workspace).put(asked.hooks, "run-finished", {})
    (left,) = HookSender(asked, workspace).send_pending()
    assert left.state == "pending" and "address-blocked" in left.answer


def test_a_real_receiver_can_check_the_signature_and_the_name_is_pinned_to_the_checked_address(
    workspace: FileWorkspace,
) -> None:
    with receiving() as (port, got):
        asked = config("http://hook.test/in", NetworkSettings(resolve=(("hook.test", f"127.0.0.1:{port}"),)))
        watch = AlertWatch(workspace, HookSender(asked, workspace))
        watch.judge(Sample(0, {}, 0, 0, BACKLOG + 1, {}))
        assert [alert.name for alert in read_alerts(workspace)] == ["backlog"]
        watch.judge(Sample(10, {}, 0, 0, 0, {}))
        assert read_alerts(workspace) == []
        watch.finish()
    assert [headers["Sumi-Event"] for headers, _ in got] == ["alert-raised", "alert-cleared"]
    for headers, body in got:
        moment, given = (part.partition("=")[2] for part in headers["Sumi-Signature"].split(","))
        assert given == hmac.new(SECRET.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
        assert headers["Host"] == "hook.test" and json.loads(body)["alert"] == "backlog"
    assert {each.state for each in Outbox(workspace).deliveries()} == {"delivered"}


_TELLS = """
import sys
from pathlib import Path
from crawler.config.load import load
from crawler.hooks.delivery import HookSender
from crawler.workspace.opening import open_workspace
config = load(Path(sys.argv[1]))
sender = HookSender(config, open_workspace(config.workspace))
sender.tell("run-finished", {"run": 1})
sender.finish(60)
"""


def test_an_event_is_sent_by_the_next_start_if_its_process_was_killed_between_writing_and_sending(
    workspace: FileWorkspace, tmp_path: Path
) -> None:
    silent = socket.create_server(("127.0.0.1", 0))  # it accepts, and never answers
    toml = tmp_path / "my.toml"

    def write(port: int) -> None:
        toml.write_text(
            f'[output]\nworkspace-path = "{tmp_path / "workspace"}"\n[[quality]]\ndomain = "q.test"\n'
            '[[hook]]\nname = "receiver"\nurl = "http://hook.test/in"\nevents = ["run-finished"]\n'
            f'[network.resolve]\n"hook.test" = "127.0.0.1:{port}"\n'
        )

    write(silent.getsockname()[1])
    with silent, subprocess.Popen([sys.executable, "-c", _TELLS, str(toml)]) as teller:
        connection, _ = silent.accept()  # it is being sent, so it is written down
        teller.kill()
        connection.close()
    (left,) = Outbox(workspace).deliveries()
    assert (left.state, left.attempts) == ("pending", 0)
    with receiving() as (port, got):
        write(port)
        (sent,) = HookSender(load(toml), workspace).send_pending()
    assert (sent.state, sent.number) == ("delivered", left.number)
    assert [body for _, body in got] == [left.body.encode()]


def test_one_process_sends_at_a_time(workspace: FileWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_PATIENCE", 0)
    Outbox(workspace).put(config().hooks, "run-finished", {})
    turn = workspace.take_role(delivery.SENDER)
    try:
        assert HookSender(config(), workspace).send_pending() == []
    finally:
        turn.release()
    assert Outbox(workspace).deliveries()[0].state == "pending"


@pytest.mark.parametrize(
    ("outcome", "run", "event"),
    [
        (Outcome.COMPLETED, Run(3, RunStatus.COMPLETED), "run-finished"),
        (Outcome.COMPLETED, Run(3, RunStatus.INTERRUPTED, reason="max-pages = 5"), "limit-reached"),
        (Outcome.FAILED, Run(3, RunStatus.RUNNING), "run-failed"),
        (Outcome.BROKEN, Run(3, RunStatus.RUNNING), "run-failed"),
        (Outcome.INTERRUPTED, Run(3, RunStatus.INTERRUPTED), None),
    ],
)
@responses.activate
def test_the_end_of_a_crawl_is_told(workspace: FileWorkspace, outcome: Outcome, run: Run, event: str | None) -> None:
    answers(200)
    write_run(workspace, run)
    told = config(events=("run-finished", "limit-reached", "run-failed"))
    tell_end(told, workspace, outcome)
    found = [(each.event, each.state) for each in Outbox(workspace).deliveries()]
    assert found == ([(event, "delivered")] if event else [])


def test_an_e_mail_goes_to_the_input_of_a_local_command(workspace: FileWorkspace, tmp_path: Path) -> None:
    place = tmp_path / "mail"
    mail = HookRule(
        "mail", EVENTS, command=("/bin/sh", "-c", f"cat > {place}"), to="a@example.com", sender="b@example.com"
    )
    Outbox(workspace).put((mail,), "alert-raised", {"words": "it grows\nBcc: all@example.com"})
    (done,) = HookSender(Config(hooks=(mail,)), workspace).send_pending()
    assert (done.state, done.answer) == ("delivered", "sent by /bin/sh")
    head, _, text = place.read_text().partition("\n\n")
    assert "Subject: Sumi-Ripple: alert-raised: it grows" in head and "Bcc" not in head
    assert "event: alert-raised" in text
    failing = replace(mail, command=("/bin/sh", "-c", "exit 3"))
    Outbox(workspace).put((failing,), "alert-raised", {})
    assert "ended with code 3" in HookSender(Config(hooks=(failing,)), workspace).send_pending()[0].answer
    assert mail_of(b'{"event": "test"}', "a@example.com", "b@example.com").startswith(b"To: a@example.com")
