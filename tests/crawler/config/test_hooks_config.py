"""[[hook]]: loaded, checked, and never shown with its secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.config.describe import describe
from crawler.config.load import ConfigError, load
from crawler.config.reading_again import differences
from crawler.model import recorded_settings
from crawler.model.settings import Config, HookRule
from tests.places import ROOT

BASE = '[[quality]]\ndomain = "a.test"\n'
SECRET = "not to be shown anywhere"


def loaded(folder: Path, text: str) -> Config:
    (folder / "my.toml").write_text(BASE + text)
    return load(folder / "my.toml")


def test_a_hook_has_a_name_and_all_events_unless_it_says_otherwise(tmp_path: Path) -> None:
    url = 'url = "https://hooks.example/in?key=1"\n'
    config = loaded(tmp_path, f'[[hook]]\n{url}secret = "{SECRET}"\n[[hook]]\n{url}events = ["run-failed"]\n')
    assert [hook.name for hook in config.hooks] == ["hooks-example", "hooks-example-2"]
    assert config.hooks[1].events == ("run-failed",) and len(config.hooks[0].events) == 7
    assert config.config_hash == loaded(tmp_path, "").config_hash


def test_a_secret_is_in_no_record_no_description_and_no_mistake(tmp_path: Path) -> None:
    config = loaded(tmp_path, f'[[hook]]\nurl = "https://h.test/"\nsecret = "{SECRET}"\n')
    for text in (recorded_settings.dump(config), describe(config), repr(config.hooks)):
        assert SECRET not in text
    with pytest.raises(ConfigError) as problem:
        loaded(tmp_path, '[[hook]]\nurl = "https://h.test/"\nsecret = "hunter2"\n')
    assert "at least 16" in str(problem.value) and "hunter2" not in str(problem.value)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("", "hook[0]", "one of them"),
        ('url = "https://h.test/"\ncommand = ["/bin/x"]', "hook[0]", "one of them"),
        ('url = "ftp://h.test/"', "hook[0].url", "http or https"),
        ('url = "https://me:word@h.test/"', "hook[0].url", "without user name"),
        ('url = "https://h.test/"\nevents = ["odd"]', "hook[0].events", "run-failed"),
        ('command = ["mail"]\nto = "a@b.test"\nfrom = "a@b.test"', "hook[0].command", "whole path"),
        ('command = ["/bin/mail"]\nfrom = "a@b.test"', "hook[0].to", "e-mail address"),
        ('url = "https://h.test/"\nsecrets = "x"', "hook[0].secrets", "secret"),
    ],
)
def test_a_mistake_names_its_place(tmp_path: Path, text: str, place: str, words: str) -> None:
    with pytest.raises(ConfigError) as problem:
        loaded(tmp_path, f"[[hook]]\n{text}\n")
    found = {mistake.path: str(mistake) for mistake in problem.value.mistakes}
    assert words in found[place]


def test_the_template_for_e_mail_is_valid(tmp_path: Path) -> None:
    (hook,) = loaded(tmp_path, (ROOT / "deploy" / "mail" / "mail-hook.toml").read_text()).hooks
    assert isinstance(hook, HookRule) and hook.command[0] == "/usr/sbin/sendmail"


def test_a_reload_notices_another_secret_or_address_and_shows_neither(tmp_path: Path) -> None:
    base = '[[hook]]\nname = "us"\nurl = "https://h.test/in?key=one"\nsecret = "{}"\n'
    before = loaded(tmp_path, base.format(SECRET))
    assert differences(before, before) == []
    for text in (base.format(SECRET + "!"), base.format(SECRET).replace("key=one", "key=two")):
        (line,) = differences(before, loaded(tmp_path, text))
        assert line.startswith('hook: ["us (print ') and SECRET not in line and "key=" not in line


def test_a_reload_names_each_changed_rule_once(tmp_path: Path) -> None:
    rules = """[[page-type]]\nname = "n"\npattern = "{0}"\n[[cap]]\nname = "n"\npattern = "{0}"\nmax-pages = 1
    [[extract]]\nname = "n"\nselector = "{0}"\n[[garbage]]\nname = "n"\ntext = "{0}"\n"""
    lines = differences(loaded(tmp_path, rules.format("abc")), loaded(tmp_path, rules.format("bcd")))
    names = [line.split(" ")[0] + line.split(" ")[1] for line in lines]
    assert names == [f"{kind}:{sign}" for kind in ("cap", "extract", "garbage", "page-type") for sign in "−+"]
