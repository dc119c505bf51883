"""accept, reject and stub write the file as a whole, or not at all; undo brings every byte back."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.config.curation import Decision, decide, undo
from crawler.config.list_edit import EditError
from crawler.config.load import load
from crawler.model.settings import Config, EntryNote
from crawler.workspace.door import RoleTaken
from crawler.workspace.opening import open_workspace

TEXT = """\
# mine
[[quality]]
domain = "a.test"
seeds = ["https://a.test/"]

[[blacklist]]
domain = "*.ads.test"   # they shout

[[stub]]
domain = "wiki.test"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "my.toml"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    path.chmod(0o600)
    return path


def config_at(path: Path) -> Config:
    return load(path, workspace=path.parent / "workspace")


def test_accept_adds_a_quality_entry_with_its_seed_note_and_tags(path: Path) -> None:
    made = decide(config_at(path), Decision("accept", "Good.test", "read it", ("tea", "blog")))
    after = config_at(path)
    assert made.after == after and made.left == ()
    assert (after.quality[-1].domain, after.quality[-1].seeds) == ("good.test", ("https://good.test/",))
    assert after.entry_notes == (EntryNote("quality", "good.test", "read it", ("tea", "blog")),)
    assert path.read_bytes().startswith(b"\xef\xbb\xbf# mine") and path.stat().st_mode & 0o777 == 0o600


def test_notes_and_tags_change_no_hash(path: Path) -> None:
    bare = config_at(path)
    path.write_text(TEXT.replace('domain = "a.test"\n', 'domain = "a.test"\nnote = "n"\ntags = ["t"]\n'))
    noted = config_at(path)
    assert noted.entry_notes and (noted.config_hash, noted.map_hash) == (bare.config_hash, bare.map_hash)


def test_decisions_are_undone_one_after_the_other_to_the_byte(path: Path) -> None:
    first = path.read_bytes()
    decide(config_at(path), Decision("accept", "b.test"))
    second = path.read_bytes()
    made = decide(config_at(path), Decision("reject", "wiki.test", "not for us"))
    assert made.left == ("stub",)
    assert undo(config_at(path), None)[:2] == ("reject", "wiki.test")
    assert path.read_bytes() == second
    assert undo(config_at(path), "b.test")[:2] == ("accept", "b.test")
    assert path.read_bytes() == first
    with pytest.raises(EditError, match="nothing to undo"):
        undo(config_at(path), None)


def test_a_file_that_was_changed_since_is_not_overwritten_by_undo(path: Path) -> None:
    decide(config_at(path), Decision("stub", "b.test"))
    path.write_text(path.read_text("utf-8-sig") + "# by hand\n")
    before = path.read_bytes()
    with pytest.raises(EditError, match=r"was changed after `stub b\.test`"):
        undo(config_at(path), None)
    assert path.read_bytes() == before


def test_an_edit_that_was_recorded_but_never_made_is_passed_over_by_undo(path: Path) -> None:
    """The program may be killed after it recorded an edit and before it wrote the file."""
    decide(config_at(path), Decision("stub", "b.test"))
    made = path.read_bytes()
    decide(config_at(path), Decision("stub", "c.test"))
    path.write_bytes(made)
    assert undo(config_at(path), None)[:2] == ("stub", "b.test")


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (Decision("accept", "a.test"), "already"),
        (Decision("accept", "px.ads.test"), r"would stay blacklisted: \"\*\.ads\.test\""),
        (Decision("reject", "px.ads.test"), "blacklisted already, by"),
        (Decision("reject", "a.test"), "would not be a valid config"),
        (Decision("stub", "https://b.test/page"), "without scheme and path"),
        (Decision("stub", "b test"), "not a domain"),
        (Decision("stub", ""), "not a domain"),
        (Decision("stub", "b.test", "x" * 501), "note"),
        (Decision("stub", "b.test", "", ("two words",)), "tag"),
    ],
)
def test_a_decision_that_cannot_be_made_changes_nothing(path: Path, decision: Decision, words: str) -> None:
    before = path.read_bytes()
    with pytest.raises(EditError, match=words) as caught:
        decide(config_at(path), decision)
    assert caught.value.exit_code == 2 and "\n" not in str(caught.value)
    assert path.read_bytes() == before and not list(path.parent.glob("*.tmp"))


def test_two_decisions_at_once_are_refused(path: Path) -> None:
    workspace = open_workspace(config_at(path).workspace)
    workspace.prepare()
    role = workspace.take_role("curator")
    with pytest.raises(RoleTaken):
        decide(config_at(path), Decision("stub", "b.test"))
    role.release()


def test_a_linked_config_stays_a_link(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.toml"
    link.symlink_to(path)
    decide(load(link, workspace=tmp_path / "workspace"), Decision("stub", "b.test"))
    assert link.is_symlink() and "b.test" in path.read_text()


def test_a_note_is_written_to_the_entry_of_a_domain_and_undone(path: Path) -> None:
    before = path.read_bytes()
    made = decide(config_at(path), Decision("note", "*.ads.test", "still loud", ("ads",)))
    assert made.list_name == "blacklist" and made.before.map_hash == made.after.map_hash, "no page changes"
    assert config_at(path).entry_notes == (EntryNote("blacklist", "*.ads.test", "still loud", ("ads",)),)
    assert b"# they shout" in path.read_bytes()
    with pytest.raises(EditError, match="accept, reject or stub it first"):
        decide(config_at(path), Decision("note", "new.test", "who?"))
    assert undo(config_at(path), None)[:2] == ("note", "*.ads.test")
    assert path.read_bytes() == before
