"""`serve` and `user`, as real processes."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import requests
import trustme

from tests.crawler.cli.calling import called, sumi
from tests.reporter.web.serving import CONFIG, PASSWORD


def _line(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    return server.stdout.readline()


def test_serve_prints_a_link_that_signs_in_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(CONFIG)
    command = [sys.executable, "-m", "crawler", "serve", str(tmp_path / "my.toml"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert "works once" in _line(server)
            link = _line(server).strip()
            assert "Ctrl-C" in _line(server)
            port = re.search(r":(\d+)/enter", link)
            assert port is not None
            session = requests.Session()
            assert session.get(link, timeout=30).status_code == 200, "the front page"
            assert [cookie.name for cookie in session.cookies] == [f"sumi-session-{port[1]}"]
            taken = sumi("serve", tmp_path / "my.toml", "--port", port[1], cwd=tmp_path)
            assert (taken.returncode, "cannot listen" in taken.stderr) == (1, True)
            second = sumi("serve", tmp_path / "my.toml", "--port", "0", cwd=tmp_path)
            assert (second.returncode, "another web" in second.stderr) == (1, True)
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(30) == 0


@pytest.mark.parametrize("behind", [False, True])
def test_under_tls_here_or_in_front_the_cookie_is_for_https_alone(tmp_path: Path, behind: bool) -> None:
    (tmp_path / "my.toml").write_text(CONFIG)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
    tls = ["--behind-tls", "--name", "crawl.example"]
    if not behind:
        tls = ["--tls-certificate", str(tmp_path / "server.pem"), "--tls-key", str(tmp_path / "server.pem")]
    command = [sys.executable, "-m", "crawler", "serve", str(tmp_path / "my.toml"), "--port", "0", *tls]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            _line(server)
            link = _line(server).strip()
            host = {"Host": "crawl.example"} if behind else {}
            assert link.startswith("http://" if behind else "https://")
            link = link.replace("127.0.0.1", "localhost") if not behind else link
            answer = requests.get(
                link, headers=host, allow_redirects=False, timeout=30, verify=str(tmp_path / "ca.pem")
            )
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(30) == 0
    flags = set(answer.headers["Set-Cookie"].split("; ")[1:])
    assert flags == {"Path=/", "Max-Age=86400", "HttpOnly", "SameSite=Strict", "Secure"}
    assert answer.headers["Strict-Transport-Security"]


def test_elsewhere_needs_a_flag_and_an_account(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(CONFIG)
    bare = sumi("serve", tmp_path / "my.toml", "--host", "0.0.0.0", "--port", "0", cwd=tmp_path)
    assert (bare.returncode, "--allow-remote" in bare.stderr) == (2, True)
    flagged = sumi("serve", tmp_path / "my.toml", "--host", "0.0.0.0", "--port", "0", "--allow-remote", cwd=tmp_path)
    assert (flagged.returncode, "user add" in flagged.stderr) == (2, True)


def test_accounts_are_made_listed_changed_and_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "my.toml"
    config.write_text(CONFIG)
    made = subprocess.run(
        [sys.executable, "-m", "crawler", "user", "add", "ada", str(config), "--role", "admin"],
        input=PASSWORD + "\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert made.stdout == "Made the account ada with the role admin\n", made.stderr
    assert called("user", "role", "ada", "user", config) == 0
    assert called("user", "token", "ada", config, "--label", "nightly") == 0
    assert called("user", "list", config) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1].startswith("sumi_") and re.match(r"ada  user  since .*  tokens: nightly", said[2])
    assert called("user", "remove", "ada", config) == 0
    assert called("user", "remove", "ada", config) == 1
    assert "there is no account 'ada'" in capsys.readouterr().err
    assert called("user", "link", config, "--port", "99") == 0
    assert capsys.readouterr().out.startswith("http://127.0.0.1:99/enter?token=")
