"""Keys, wire URLs and links (seed 000 §3.1 and §3.2; design, "Key and wire URL")."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawler.model.urls import (
    Address,
    Base,
    LinkResolver,
    UrlError,
    authority_of,
    domain_of,
    hash64,
    host_of,
    normalize,
    resolve,
    wire_of,
)

# -- seed 000 §3.1: the table of examples -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://example.com/page", "https://example.com/page"),
        ("https://www.example.com/", "https://example.com/"),
        ("https://example.com/page/", "https://example.com/page"),
        ("https://example.com/page#section", "https://example.com/page"),
        ("https://example.com/page?utm_source=twitter", "https://example.com/page"),
        ("https://example.com/page?b=2&a=1", "https://example.com/page?a=1&b=2"),
        ("https://example.com/a/../b/./c", "https://example.com/b/c"),
        ("https://EXAMPLE.COM/Page", "https://example.com/Page"),
    ],
)
def test_section_3_1_every_example_of_the_table(url: str, key: str) -> None:
    assert normalize(url) == key


# -- seed 000 §3.1: the rules, one by one ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "",
        " ",
        "example.com",
        "/page",
        "//example.com/",
        "https://",
        "https:///",
        "https://exa mple.com/",
        "https://example.com:99999/",
        "https://[::1/",
        "https://1.2.3.4.5/",
        "mailto:a@example.com",
        "javascript:void(0)",
        "tel:+1",
        "data:text/html,x",
        "ftp://example.com/",
        "file:///etc/passwd",
        "about:blank",
        "ws://example.com/",
        "\0",
        "http",
        "https:",
    ],
)
def test_rule_1_what_is_malformed_or_not_http_is_rejected_with_url_error(url: str) -> None:
    with pytest.raises(UrlError):
        normalize(url)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://example.com/", "https://example.com/"),
        ("HTTP://example.com/", "https://example.com/"),
        ("http://example.com:80/", "https://example.com/"),
        ("http://example.com:443/", "https://example.com/"),
        ("https://example.com:443/", "https://example.com/"),
        ("https://example.com:0443/", "https://example.com/"),
        ("https://example.com:/", "https://example.com/"),
        ("http://example.com:8080/", "https://example.com:8080/"),
        ("https://example.com:80/", "https://example.com:80/"),  # not https's port: another server
    ],
)
def test_rule_2_https_is_enforced_and_the_default_port_goes(url: str, key: str) -> None:
    assert normalize(url) == key


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://ExAmPlE.CoM/", "https://example.com/"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://BÜCHER.example/", "https://xn--bcher-kva.example/"),
        ("https://b%C3%BCcher.example/", "https://xn--bcher-kva.example/"),
        ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"),
        ("https://日本語。jp/", "https://xn--wgv71a119e.jp/"),
        ("https://ＧＯ.com/", "https://go.com/"),
        ("https://example.com./", "https://example.com/"),
        ("https://example.com.../x", "https://example.com/x"),
        ("https://0x7f.1/", "https://127.0.0.1/"),
        ("https://0x7f.1./", "https://127.0.0.1/"),
        ("https://0x7f.1../", "https://127.0.0.1/"),
        ("https://2130706433/", "https://127.0.0.1/"),
        ("https://[0:0::1]/", "https://[::1]/"),
        ("https://[::ffff:1.2.3.4]:8443/", "https://[::ffff:102:304]:8443/"),
    ],
)
def test_rule_3_the_host_is_lower_case_punycode_without_trailing_dots(url: str, key: str) -> None:
    assert normalize(url) == key


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://www.example.com/", "https://example.com/"),
        ("https://WWW.example.com/", "https://example.com/"),
        ("https://www.example.co.uk:8443/", "https://example.co.uk:8443/"),
        ("https://www.www.example.com/", "https://example.com/"),
        ("https://www.com/", "https://www.com/"),  # nothing like a host would remain
        ("https://www.www.com/", "https://www.com/"),
        ("https://www./", "https://www/"),
        ("https://www.com./", "https://www.com/"),
        ("https://www..com/", "https://www..com/"),
        ("https://www2.example.com/", "https://www2.example.com/"),
        ("https://wwwexample.com/", "https://wwwexample.com/"),
        ("https://a.www.example.com/", "https://a.www.example.com/"),
    ],
)
def test_rule_4_www_goes_where_a_host_remains(url: str, key: str) -> None:
    assert normalize(url) == key


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://example.com/%7Euser/%61%2D%5f%2E", "https://example.com/~user/a-_."),
        ("https://example.com/a%2fb", "https://example.com/a%2Fb"),  # a slash in a name is not a slash
        ("https://example.com/a%c3%a4", "https://example.com/a%C3%A4"),
        ("https://example.com/aä", "https://example.com/a%C3%A4"),
        ("https://example.com/a b", "https://example.com/a%20b"),
        ("https://example.com/a%20b", "https://example.com/a%20b"),
        ("https://example.com/a+b", "https://example.com/a+b"),
        ("https://example.com/%3F%23%25%3B", "https://example.com/%3F%23%25%3B"),
        ("https://example.com/100%", "https://example.com/100%25"),
        ("https://example.com/%zz", "https://example.com/%25zz"),
        ("https://example.com/%%34%31", "https://example.com/%2541"),
        ("https://example.com/%2541", "https://example.com/%2541"),
        ("https://example.com/a|b[c]", "https://example.com/a%7Cb%5Bc%5D"),
        ("https://example.com/a%7Cb%5bc%5D", "https://example.com/a%7Cb%5Bc%5D"),
        ("https://example.com/(a)!$&'*,;=:@", "https://example.com/(a)!$&'*,;=:@"),
        ("https://example.com/a\\b", "https://example.com/a/b"),
        ("https://example.com/a\tb\nc", "https://example.com/abc"),
    ],
)
def test_rule_5_unneeded_escapes_are_decoded_and_the_others_are_in_upper_case(url: str, key: str) -> None:
    assert normalize(url) == key


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://example.com/a/../b/./c", "https://example.com/b/c"),
        ("https://example.com/a/%2e%2E/b/%2e/c", "https://example.com/b/c"),
        ("https://example.com/../../a", "https://example.com/a"),
        ("https://example.com/a/..", "https://example.com/"),
        ("https://example.com/a/b/..", "https://example.com/a"),
        ("https://example.com/a/.", "https://example.com/a"),
        ("https://example.com/a/...", "https://example.com/a/..."),
        ("https://example.com/a/%2e%2e%2e", "https://example.com/a/..."),
        ("https://example.com/a%2fb/../c", "https://example.com/c"),
    ],
)
def test_rule_5_dot_segments_go_however_they_are_written(url: str, key: str) -> None:
    assert normalize(url) == key


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://example.com", "https://example.com/"),
        ("https://example.com?a=1", "https://example.com/?a=1"),
        ("https://example.com/", "https://example.com/"),
        ("https://example.com//", "https://example.com/"),
        ("https://example.com/a/", "https://example.com/a"),
        ("https://example.com/a//", "https://example.com/a"),
        ("https://example.com/a/?b=1", "https://example.com/a?b=1"),
        ("https://example.com//a//b/", "https://example.com//a//b"),
        ("https://example.com/a?b=/", "https://example.com/a?b=/"),
    ],
)
def test_rule_5_the_trailing_slash_goes_except_at_the_root(url: str, key: str) -> None:
    assert normalize(url) == key


@pytest.mark.parametrize("fragment", ["", "x", "!/route", "a#b", "a?b=c", "%23", "ä"])
def test_rule_6_the_fragment_goes(fragment: str) -> None:
    assert normalize(f"https://example.com/p?q=1#{fragment}") == "https://example.com/p?q=1"


@pytest.mark.parametrize(
    "query",
    [
        "utm_source=x",
        "utm_medium=x&utm_campaign=y&utm_anything_else=z",
        "utm_=",
        "utm%5Fsource=x",
        "%75tm_source=x",
        "fbclid=abc",
        "gclid=abc",
        "mc_eid=abc",
        "ref=home",
        "source=feed",
        "ref",
        "source=",
        "ref=a&ref=b",
    ],
)
def test_rule_7_tracking_parameters_go(query: str) -> None:
    assert normalize(f"https://example.com/p?{query}") == "https://example.com/p"
    assert normalize(f"https://example.com/p?b=2&{query}&a=1") == "https://example.com/p?a=1&b=2"


@pytest.mark.parametrize(
    "query", ["utmsource=x", "my_utm_source=x", "reference=x", "refs=x", "a=ref", "a=utm_source", "Ref=x"]
)
def test_rule_7_what_only_looks_like_a_tracking_parameter_stays(query: str) -> None:
    assert normalize(f"https://example.com/p?{query}") == f"https://example.com/p?{query}"


def test_rule_7_the_tracking_parameters_can_be_chosen() -> None:
    url = "https://example.com/?ref=1&sid=2&s_x=3&q=4"
    assert normalize(url, ("sid", "s_*")) == "https://example.com/?q=4&ref=1"
    assert normalize(url, ["sid"]) == "https://example.com/?q=4&ref=1&s_x=3"
    assert normalize(url, ()) == "https://example.com/?q=4&ref=1&s_x=3&sid=2"
    assert normalize(url, ("*",)) == "https://example.com/"


@pytest.mark.parametrize(
    ("query", "sorted_query"),
    [
        ("b=2&a=1", "a=1&b=2"),
        ("a=2&a=1", "a=1&a=2"),
        ("a=1&a=1", "a=1&a=1"),
        ("a-b=1&a=2", "a=2&a-b=1"),  # by name, not by the whole piece
        ("b&a", "a&b"),
        ("a=&a", "a&a="),
        ("a=1=2&a=1", "a=1&a=1=2"),
        ("B=1&a=1", "B=1&a=1"),
        ("z=%26&y=%3D&x=+&w=%20&v=%2B", "v=%2B&w=%20&x=+&y=%3D&z=%26"),
        ("a%3d1=2", "a%3D1=2"),
        ("q=%7eok&%61=b", "a=b&q=~ok"),
        ("a[]=1&a%5b%5d=0", "a%5B%5D=0&a%5B%5D=1"),
        ("q='", "q=%27"),
        ("q=ä", "q=%C3%A4"),
        ("a;b=1", "a;b=1"),
    ],
)
def test_rule_8_the_rest_of_the_query_is_sorted_and_keeps_its_meaning(query: str, sorted_query: str) -> None:
    assert normalize(f"https://example.com/?{query}") == f"https://example.com/?{sorted_query}"


@pytest.mark.parametrize("end", ["?", "?#", "?&", "?&&", "?utm_source=1", "?utm_source=1&&ref=2", "#"])
def test_rule_9_an_empty_query_goes(end: str) -> None:
    assert normalize(f"https://example.com/p{end}") == "https://example.com/p"


def test_userinfo_never_gets_into_a_key_or_onto_the_wire() -> None:
    for url in (
        "https://user:secret@example.com/",
        "https://user@example.com/",
        "https://a%40b:c@example.com/",
        "https://@example.com",
    ):
        assert normalize(url) == wire_of(url) == "https://example.com/"


# -- properties ----------------------------------------------------------------------------------------------

_ALPHABET = "aA0%2e.Ff/\\?#&=+;:@[]|~-_ ü\t"
_PIECES = st.one_of(
    st.text(alphabet=_ALPHABET, max_size=12),
    st.sampled_from(
        [
            "%2e",
            "%2E%2e",
            "..",
            "/",
            "//",
            "www.",
            "www.www.",
            "utm_source=1",
            "&",
            "ref",
            "%",
            "%25",
            "%41",
            "?",
            "#",
            "@",
        ]
    ),
    st.text(max_size=5),
)
_SCHEMES = st.sampled_from(["https://", "http://", "HTTPS:", "https:/", "https:\\\\", "", "//", "ftp://", "https:///"])
_HOSTS = st.one_of(
    st.sampled_from(
        [
            "example.com",
            "www.example.com",
            "WWW.a.b",
            "www.com",
            "1.2.3.4",
            "0x7f.1",
            "[::1]",
            "bücher.de",
            "a.b.",
            "..",
            "h",
        ]
    ),
    st.text(alphabet="aw.xn-0xü%", min_size=1, max_size=10),
)
_PORTS = st.sampled_from(["", ":", ":80", ":443", ":8080", ":0", ":65535", ":65536", "."])
URLS = st.builds(
    lambda scheme, user, host, port, rest: scheme + user + host + port + "".join(rest),
    _SCHEMES,
    st.sampled_from(["", "", "", "u:p@", "a@b@"]),
    _HOSTS,
    _PORTS,
    st.lists(_PIECES, max_size=8).map(lambda parts: ["/", *parts]),
)


@given(URLS | st.text(max_size=30))
@example("https://www.www.www.a.b/")
@example("https://h/%%%33%33")
@example("https://www.0x7f.1../")
@example("https://h/?%26=%3D&%3d=%26")
@example("https://h/\ud800?\udfff")
@settings(max_examples=1500, deadline=None)
def test_normalising_twice_is_normalising_once_and_only_url_error_is_ever_raised(url: str) -> None:
    try:
        key = normalize(url)
    except UrlError:
        with pytest.raises(UrlError):
            wire_of(url)
        return
    assert normalize(key) == key
    assert key.startswith("https://")
    assert key.isascii() and not set(key) & set(' "<>\\^`{|}#')
    wire = wire_of(url)
    assert wire_of(wire) == wire
    assert normalize(wire) == key
    assert wire_of(key) == key  # a key can be asked for as it is
    assert domain_of(key) == host_of(key) == domain_of(wire)
    assert "@" not in authority_of(wire) and "#" not in wire


@given(URLS, st.lists(_PIECES, max_size=6).map("".join))
@settings(max_examples=700, deadline=None)
def test_a_resolver_says_what_resolve_and_normalize_say(base: str, href: str) -> None:
    absolute = resolve(base, href)
    link = LinkResolver().link(base, href)
    if absolute is None:
        assert link is None
        return
    assert link == (normalize(absolute), wire_of(absolute), domain_of(normalize(absolute)), hash64(normalize(absolute)))


@given(URLS, st.lists(_PIECES, max_size=6).map("".join))
@settings(max_examples=700, deadline=None)
def test_a_resolver_that_knows_a_site_says_of_it_what_one_says_that_does_not(base: str, href: str) -> None:
    """Plain paths on sites that were parsed before are not parsed."""
    resolver = LinkResolver()
    for known in ("/", "/x", href):
        resolver.link(base, known)
    for path in ("/a", "/a/", "/a.b/c-d/", "/", "/.x", "/a/../b", "/a//b", "/a?b", "/A%7e", "/a#b", href, "/" + href):
        assert resolver.link(base, path) == LinkResolver().link(base, path)
        absolute = resolve(base, path)
        if absolute is not None:
            assert resolver.link("", absolute) == LinkResolver().link("", absolute)


_SITE = [
    "https://example.com/dir/page?x=1",
    "https://example.com/dir/other",
    "https://example.com/",
    "https://example.com//",
    "https://example.com/a//b/",
    "http://example.com/dir/a/b",
    "https://example.org/dir/page",
    "nonsense",
    "data:,x",
]
_HREFS = [
    "",
    "#",
    "#a",
    "?",
    "?q=2",
    "x",
    "./x",
    "../x",
    "../../../x",
    "./.././x",
    "../",
    "..//x",
    ".//x/y",
    "../?q",
    "../#y",
    "../x/../y",
    "..\\x",
    ".../x",
    ".x",
    "/x",
    "//example.net/x",
    "/\\example.net",
    "\\x",
    "https:x",
    "https:?q",
    "http:x",
    "https://example.net/",
    "HTTPS://example.net/",
    " /x",
    "\tx",
    "a:b",
    "x:y",
    ".",
    "..",
    "%2e%2e/x",
    "x?y",
    "x#y",
    "mailto:a@b",
    "javascript:x",
    "h\nttps://example.net/",
    "/\t/example.net",
    "/%zz",
    "ä",
    "0",
    "~",
    "http://",
    "https:///a",
]


@pytest.mark.parametrize("base", _SITE)
@pytest.mark.parametrize("href", _HREFS)
def test_an_address_means_what_its_href_means(base: str, href: str) -> None:
    link, absolute = LinkResolver().link(base, href), resolve(base, href)
    assert (link and link.key) == (absolute and normalize(absolute))


def test_an_absolute_href_is_its_own_address_and_no_other_href_is_an_address() -> None:
    """So hrefs may be looked for among addresses as they are."""
    for base in _SITE:
        for href, address in zip(_HREFS, Base(base).addresses(_HREFS), strict=True):
            assert (address == href) == href.startswith(("https://", "http://"))


def test_pages_that_mean_the_same_have_the_same_address() -> None:
    def address(base: str, href: str) -> Address:
        return Base(base).addresses([href])[0]

    assert address("https://example.com/a/b", "/x") == address("https://example.com/c/d?e", "/x")
    assert address("https://example.com/a/b", "x") == address("https://example.com/a/c?y", "x")
    assert address("https://example.com/a/b/c", "../x") == address("https://example.com/a/d", "./x")
    assert address("https://example.com/a/b", "/x") != address("https://example.org/a/b", "/x")
    assert address("https://example.com/a/b", "?x") != address("https://example.com/a/c", "?x")


# -- joining -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("href", "absolute"),
    [
        ("", "https://example.com/a/b?c=d"),
        ("#x", "https://example.com/a/b?c=d#x"),
        ("?y", "https://example.com/a/b?y"),
        ("x", "https://example.com/a/x"),
        ("./x/", "https://example.com/a/x/"),
        ("../x", "https://example.com/x"),
        ("../../../x", "https://example.com/x"),
        ("/x", "https://example.com/x"),
        ("//example.org/x", "https://example.org/x"),
        ("http://example.org/x", "http://example.org/x"),
        ("https:x", "https://example.com/a/x"),
        ("  x  ", "https://example.com/a/x"),
        ("mailto:a@example.com", None),
        ("javascript:void(0)", None),
        ("data:text/html,x", None),
        ("tel:123", None),
        ("https://[", None),
        ("https://a b/", None),
    ],
)
def test_resolve_joins_as_browsers_do(href: str, absolute: str | None) -> None:
    assert resolve("https://example.com/a/b?c=d#e", href) == absolute


def test_a_base_that_is_no_url_leaves_absolute_links_their_meaning() -> None:
    for base in ("", "nonsense", "https://["):
        assert resolve(base, "https://example.com/x") == "https://example.com/x"
        assert resolve(base, "/x") is None
        links = [LinkResolver().link(base, href) for href in ("/x", "x", "#", "HTTPS://example.com/x")]
        assert [link and link.key for link in links] == [None, None, None, "https://example.com/x"]


# -- hosts, domains, hashes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wire", "authority", "host", "domain"),
    [
        ("https://www.example.com/", "www.example.com", "www.example.com", "example.com"),
        ("https://example.com:8443/a:b@c", "example.com:8443", "example.com", "example.com"),
        ("https://[::1]/", "[::1]", "[::1]", "[::1]"),
        ("https://[::1]:8443/", "[::1]:8443", "[::1]", "[::1]"),
        ("https://www.com/", "www.com", "www.com", "www.com"),
    ],
)
def test_section_3_2_the_domain_is_the_keys_host(wire: str, authority: str, host: str, domain: str) -> None:
    assert (authority_of(wire), host_of(wire), domain_of(wire)) == (authority, host, domain)
    assert domain_of(normalize(wire)) == domain


@pytest.mark.parametrize(
    ("url", "wire"),
    [
        ("http://www.example.com/dir/", "https://www.example.com/dir/"),
        ("https://www.example.com/?b=2&a=1&utm_source=x#top", "https://www.example.com/?b=2&a=1&utm_source=x"),
        ("https://EXAMPLE.com/A%7e", "https://example.com/A%7e"),
        ("https://example.com./x", "https://example.com/x"),
        ("http://example.com:443/?", "https://example.com/?"),
        ("http://example.com:8080", "https://example.com:8080/"),
    ],
)
def test_the_wire_url_is_https_and_otherwise_as_the_site_wrote_it(url: str, wire: str) -> None:
    assert wire_of(url) == wire


def test_hashes_are_the_same_everywhere_and_fit_a_signed_64_bit_column() -> None:
    assert hash64("https://example.com/") == 1493557592560457051
    assert hash64("") == -1970711489451281740
    values = [hash64(f"https://example.com/{number}") for number in range(2000)]
    assert len(set(values)) == 2000
    assert all(-(2**63) <= value < 2**63 for value in values)
    assert min(values) < 0 < max(values)


def test_further_probes_give_further_hashes() -> None:
    probes = [hash64("https://example.com/", probe) for probe in range(50)]
    assert len(set(probes)) == 50
    assert probes[0] == hash64("https://example.com/")


def test_the_resolver_uses_its_own_tracking_parameters() -> None:
    link = LinkResolver(("sid",)).link("https://example.com/", "/?sid=1&ref=2")
    assert link is not None and link.key == "https://example.com/?ref=2"
