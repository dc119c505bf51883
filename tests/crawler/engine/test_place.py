"""The URL of the engine: what it means, and that nothing of its credentials is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.engine.place import Place, given_settings, place_of, without_credentials


@pytest.mark.parametrize(
    ("url", "place", "is_local"),
    [
        ("postgresql://crawl@db.internal/terrain", Place("db.internal", "", "terrain"), False),
        ("postgres://crawl:x@db.internal:6432/terrain?sslmode=require", Place("db.internal", "6432", "terrain"), False),
        ("postgresql://localhost/terrain", Place("localhost", "", "terrain"), True),
        ("postgresql://127.0.0.2:5433/terrain", Place("127.0.0.2", "5433", "terrain"), True),
        ("postgresql://[::1]:5433/terrain", Place("::1", "5433", "terrain"), True),
        ("postgresql:///terrain?host=/run/postgresql", Place("/run/postgresql", "", "terrain"), True),
        ("postgresql://%2Frun%2Fpostgresql/terrain", Place("/run/postgresql", "", "terrain"), True),
        ("postgresql:///terrain", Place("", "", "terrain"), True),
        ("postgresql://a.example:1,b.example:2/terrain", Place("a.example,b.example", "1", "terrain"), False),
        ("postgresql://localhost,b.example/terrain", Place("localhost,b.example", "", "terrain"), False),
        ("postgresql://db.example/?dbname=other", Place("db.example", "", "other"), False),
        ("postgresql://localhost/terrain?hostaddr=192.0.2.1", Place("192.0.2.1", "", "terrain"), False),
        ("postgresql://localhost.evil.example/terrain", Place("localhost.evil.example", "", "terrain"), False),
    ],
)
def test_a_url_names_a_host_a_port_and_a_database(url: str, place: Place, is_local: bool) -> None:
    assert place_of(url) == place
    assert place.is_local == is_local


@pytest.mark.parametrize(
    ("url", "environ", "place", "is_local"),
    [
        ("postgresql:///terrain", {"PGHOST": "db.internal"}, Place("db.internal", "", "terrain"), False),
        ("postgresql:///terrain", {"PGHOST": "/run/x", "PGPORT": "1"}, Place("/run/x", "1", "terrain"), True),
        ("postgresql:///terrain", {"PGHOSTADDR": "192.0.2.1"}, Place("192.0.2.1", "", "terrain"), False),
        (
            "postgresql:///terrain",
            {"PGHOST": "::1", "PGHOSTADDR": "192.0.2.1"},
            Place("192.0.2.1", "", "terrain"),
            False,
        ),
        ("postgresql:///terrain", {"PGSERVICE": "far"}, Place("service far", "", "terrain"), False),
        ("postgresql:///terrain?service=far", {"PGHOST": "/run/x"}, Place("service far", "", "terrain"), False),
        ("postgresql://localhost/terrain?service=far", {}, Place("localhost", "", "terrain"), True),
        ("postgresql://localhost/terrain", {"PGHOST": "db.internal"}, Place("localhost", "", "terrain"), True),
    ],
)
def test_what_a_url_leaves_open_the_environment_says(
    url: str, environ: dict[str, str], place: Place, is_local: bool
) -> None:
    assert place_of(url, environ) == place
    assert place.is_local == is_local


@pytest.mark.parametrize("password", ["p@s3cret", "p/s3cret", "p?s3cret", "12?s3cret", "12/s3cret", "p#s3cret", "@"])
def test_a_raw_character_of_a_password_is_not_taken_for_its_end(password: str) -> None:
    """The driver ends it at the first @, and would look the rest up as the name of a host."""
    with pytest.raises(ValueError, match="written as %25, %2F, %3F, %23 and %40") as refused:
        place_of(f"postgresql://crawl:{password}@db.internal/terrain")
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("url", ["", "db.internal/terrain", "https://db.internal/terrain", "postgresql://[::1/x"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        place_of(url)


def test_settings_of_the_url_are_known_by_name() -> None:
    assert given_settings("postgresql://h/d?sslmode=require&sslrootcert=") == {"sslmode", "sslrootcert"}


@given(st.text(st.characters(exclude_characters="\"'", exclude_categories=("Z", "C")), min_size=6))
def test_no_password_is_shown_whatever_it_is_made_of(password: str) -> None:
    secret = f"s3cr3t{password}s3cr3t"
    shown = without_credentials(f'url = "postgresql://crawl:{secret}@db.internal/terrain" is wrong')
    assert "s3cr3t" not in shown
    assert "db.internal/terrain" in shown
    assert secret not in str(place_of("postgresql://crawl:x@db.internal/terrain"))


@pytest.mark.parametrize("text", ["?password=hunter2&x=1", "password='hunter2 3' host=x", "sslpassword: hunter2;"])
def test_a_password_among_settings_is_not_shown(text: str) -> None:
    assert "hunter2" not in without_credentials(text)
