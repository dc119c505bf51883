"""Random terrains, and a plain breadth-first reading of them to compare the ingest with."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from hypothesis import strategies as st

from crawler.model.records import Closure, DomainEvent, FamilyEvent, PageResult, Result, RunEvent, dump
from crawler.model.settings import (
    CapRule,
    Config,
    CrawlerSettings,
    DiscoverySettings,
    OutputSettings,
    QualityEntry,
    ScopeSettings,
)
from crawler.rules.page_rules import CapUnit, rule_text
from ingest.apply import MapUpdater
from ingest.writing.store import Store

AT = "2026-01-01T00:00:00.000Z"
HOSTS = ["qa.test", "qb.test", "sub.qb.test", "bad.test", "x.stub.test", "one.test", "two.test"]


def config(folder: Path, max_depth: int = 2, terrain: Terrain | None = None) -> Config:
    """`terrain`: with its scope, its part of a site and its caps."""
    plain = _plain_config(folder, max_depth)
    if terrain is None:
        return plain
    part = [QualityEntry("one.test", (terrain.part,), "/" + terrain.part.rpartition("/")[2])] if terrain.part else []
    return replace(
        plain,
        quality=(*plain.quality, *part),
        scope=ScopeSettings(deny=tuple(f"^{key}$" for key in sorted(terrain.denied))),
        caps=CAPS if terrain.caps else (),
    )


def _plain_config(folder: Path, max_depth: int) -> Config:
    return Config(
        crawler=CrawlerSettings(max_depth=max_depth),
        output=OutputSettings(folder / "map.db", folder / "summary.md"),
        quality=(
            QualityEntry("qa.test", ("https://qa.test/0",)),
            QualityEntry("*.qb.test", ("https://qb.test/0",)),
        ),
        blacklist=("bad.test",),
        stub=("*.stub.test",),
        discovery=DiscoverySettings(sitemaps=False),  # `test_sitemaps.py` turns them on
        workspace=folder / "workspace",
    )


@dataclass
class Terrain:
    """key → what a visit there finds: ("links", [keys], nofollow) | ("redirect", key) | ("error", state)."""

    pages: dict[str, tuple]
    closed: dict[str, list[Closure]] = field(default_factory=dict)  # domain → why; its unvisited pages get that
    closers: dict[str, Closure] = field(default_factory=dict)  # page → what its visit says of the whole domain
    families: dict[str, set[str]] = field(default_factory=dict)  # domain whose numbered pages had their share → spared
    unvisited: set[str] = field(default_factory=set)  # pages of such domains that no visit reached
    denied: set[str] = field(default_factory=set)  # out of scope
    part: str = ""  # a page of one.test that is a quality entry by itself
    caps: dict[str, set[str]] = field(default_factory=dict)  # name of a cap that is reached → spared


# Pages of two.test are under both; whichever is reached first, "odd" counts.
CAPS = (CapRule("two", "^https://two[.]test/", 5000), CapRule("odd", "^https://(?:one|two)[.]test/[13579]$", 5000))


def domain(key: str) -> str:
    return key.split("/")[2]


@st.composite
def terrains(draw: st.DrawFn, size: int = 6) -> Terrain:
    keys = [f"https://{host}/{n}" for host in HOSTS for n in range(draw(st.integers(1, size)))]
    one = st.sampled_from(keys)
    pages: dict[str, tuple] = {}
    for key in keys:
        what = draw(st.sampled_from(["links"] * 6 + ["redirect"] * 3 + ["error"]))
        if what == "links":
            pages[key] = ("links", draw(st.lists(one, max_size=5, unique=True)), draw(st.integers(0, 9)) == 0)
        elif what == "redirect":
            target = draw(one)
            pages[key] = ("redirect", target) if target != key else ("links", [], False)
        else:
            pages[key] = ("error", draw(st.sampled_from(["dead_link", "unreachable", "failed", "content_mismatch"])))
    free = [key for key in keys if is_listed(key) is None]
    if len(free) > 14 and draw(st.booleans()):  # a chain of redirects that may be too long
        chain = draw(st.permutations(free[1:]))[: draw(st.integers(11, 16))]
        pages |= {source: ("redirect", target) for source, target in pairwise(chain)}
        pages[free[0]] = ("links", [chain[0], *draw(st.lists(one, max_size=2))], False)
    terrain = Terrain(pages)
    for host in draw(st.lists(st.sampled_from(["one.test", "two.test", "sub.qb.test"]), max_size=2, unique=True)):
        mine = st.sampled_from([key for key in keys if domain(key) == host])
        terrain.closed[host] = draw(st.lists(_CLOSURES, max_size=2))
        if draw(st.booleans()):
            terrain.closers[draw(mine)] = draw(_CLOSURES)
        if draw(st.booleans()):
            terrain.families[host] = set(draw(st.lists(mine, max_size=2)))
        if terrain.closed[host] or host in terrain.families:
            terrain.unvisited |= set(draw(st.lists(mine, unique=True)))
    return terrain


@st.composite
def ruled_terrains(draw: st.DrawFn, size: int = 6) -> Terrain:
    """The same with rules about single pages: scope, a part of a site, caps."""
    terrain = draw(terrains(size))
    keys = sorted(terrain.pages)
    terrain.denied = set(draw(st.lists(st.sampled_from(keys), max_size=6)))
    terrain.part = draw(st.sampled_from(["", *(key for key in keys if domain(key) == "one.test")]))
    for cap in draw(st.lists(st.sampled_from(CAPS), unique=True)):
        mine = [key for key in keys if re.search(cap.pattern, key)]
        terrain.caps[cap.name] = set(draw(st.lists(st.sampled_from(mine), max_size=3))) if mine else set()
        terrain.unvisited |= set(draw(st.lists(st.sampled_from(mine), unique=True))) if mine else set()
    return terrain


# The last one was made under a smaller budget than the rules of these tests give: it does not count.
_CLOSURES = st.sampled_from(
    [
        Closure("rate-limited", 7),
        Closure("request-limit", 7, 500),
        Closure("crawl-delay", 1, 120_000),
        Closure("request-limit", 7, 100),
        Closure("breaker-open", 7),
    ]
)
_CLOSED_AS = {
    "rate-limited": ("rate_limited", "rate-limited"),
    "request-limit": ("request_limit_hit", "request-limit"),
    "crawl-delay": ("failed", "crawl-delay-too-long"),
    "breaker-open": ("failed", "breaker-open"),
}


def is_listed(key: str) -> str | None:
    host = domain(key)
    if host == "bad.test":
        return "blacklisted"
    return "stubbed" if host.endswith("stub.test") else None


def origins_of(key: str, terrain: Terrain) -> set[str]:
    host = domain(key)
    if key == terrain.part:
        return {f"{key.removeprefix('https://')}/"}
    if host == "qa.test":
        return {"qa.test"}
    return {"*.qb.test"} if host == "qb.test" or host.endswith(".qb.test") else set()


@dataclass
class Reading:
    """A map, as sets that can be compared."""

    pages: dict[str, tuple]  # key → (state, error slug)
    depths: dict[tuple[str, str], int]
    links: set[tuple[str, str, int]]
    references: dict[str, tuple[int, frozenset[str]]]  # listed key → (count, referrers)
    frontier: dict[str, int]


def read_plainly(terrain: Terrain, max_depth: int) -> Reading:
    """The map as a person would draw it with all pages at hand: go round until nothing changes."""
    depths: dict[tuple[str, str], int] = {}
    hops: dict[str, int] = {}  # redirects in a row that lead to a page, the fewest of all paths

    def lower(key: str, origin: str, depth: int) -> bool:
        if depth > max_depth + 1 or depths.get((key, origin), depth + 1) <= depth:
            return False
        depths[key, origin] = depth
        return True

    def nearest(key: str) -> int | None:
        mine = [d for (k, _), d in depths.items() if k == key]
        return min(mine) if mine else None

    def is_visited(key: str) -> bool:
        near = nearest(key)
        return (
            is_listed(key) is None
            and key not in terrain.denied
            and near is not None
            and near <= max_depth
            and hops[key] <= 10
            and key in terrain.pages
            and key not in terrain.unvisited
        )

    seen = {"https://qa.test/0", "https://qb.test/0"} | ({terrain.part} if terrain.part else set())
    seeds = frozenset(seen)
    for key in seen:
        hops[key] = 0
        for origin in origins_of(key, terrain):
            lower(key, origin, 0)
    changed = True
    while changed:
        changed = False
        for key in sorted(seen):
            if not is_visited(key):
                continue
            kind, *rest = terrain.pages[key]
            targets = rest[0] if kind == "links" else [rest[0]] if kind == "redirect" else []
            is_followed = not (kind == "links" and rest[1])
            for target in targets:
                if target not in seen:
                    seen.add(target)
                    changed = True
                if is_followed:
                    passed = hops[key] + 1 if kind == "redirect" else 0
                    if hops.get(target, passed + 1) > passed:
                        hops[target] = passed
                        changed = True
                    if is_listed(target) is None:
                        for origin in origins_of(target, terrain):
                            changed |= lower(target, origin, 0)
                    for (k, origin), depth in sorted(depths.items()):
                        if k == key and depth <= max_depth:
                            changed |= lower(target, origin, depth + (0 if kind == "redirect" else 1))
    redirects = {k: terrain.pages[k][1] for k in seen if is_visited(k) and terrain.pages[k][0] == "redirect"}
    too_far = {key for key, passed in hops.items() if passed > 10}
    closed = _closed(terrain, [key for key in seen if is_visited(key)])

    def state(key: str) -> tuple:
        return _state(key, terrain, nearest(key), is_visited(key), redirects, max_depth, closed, too_far)

    return Reading(
        {key: state(key) for key in seen},
        depths,
        links := _links(terrain, seen, is_visited),
        _references(links, seen),
        {
            key: 8 * (nearest(key) or 0) + (0 if origins_of(key, terrain) else 4) + (0 if key in seeds else 1)
            for key in seen
            if state(key)[0] == "queued"
        },
    )


def read_after(earlier: Reading, later: Reading) -> Reading:
    """The map after a second walk: what that one saw stands as it saw it, and the rest as it was left."""
    kinds = {(a, b): kind for a, b, kind in earlier.links} | {(a, b): kind for a, b, kind in later.links}
    links = {(a, b, kind) for (a, b), kind in kinds.items()}
    pages = earlier.pages | later.pages
    kept = {place: depth for place, depth in earlier.depths.items() if place[0] not in later.pages}
    return Reading(pages, kept | later.depths, links, _references(links, set(pages)), later.frontier)


def _closed(terrain: Terrain, visited: list[str]) -> dict[str, str]:
    """Why each closed domain is closed: the strongest of the reasons that hold under these rules."""
    reasons = {host: list(closures) for host, closures in terrain.closed.items()}
    for key in visited:
        if key in terrain.closers:
            reasons.setdefault(domain(key), []).append(terrain.closers[key])
    return {
        host: min((c.reason for c in closures if c.limit != 100), key=list(_CLOSED_AS).index)
        for host, closures in reasons.items()
        if any(c.limit != 100 for c in closures)
    }


def _links(terrain: Terrain, seen: set[str], is_visited) -> set[tuple[str, str, int]]:
    links = set()
    for key in seen:
        if is_visited(key):
            kind, *rest = terrain.pages[key]
            if kind == "links":
                links |= {(key, target, 1 if rest[1] else 0) for target in rest[0]}
            elif kind == "redirect":
                links.add((key, rest[0], 2))
    return links


def _references(links: set[tuple[str, str, int]], seen: set[str]) -> dict[str, tuple[int, frozenset[str]]]:
    found = {}
    for key in seen:
        if is_listed(key):
            referrers = frozenset(source for source, target, _ in links if target == key)
            found[key] = (len(referrers), referrers)
    return found


def _state(key, terrain, near, is_visited, redirects, max_depth, closed, too_far) -> tuple:
    if listed := is_listed(key):
        return listed, None
    if key in terrain.denied:
        return "discovered", "out-of-scope"
    if near is None:
        return "discovered", None
    if near > max_depth:
        return "depth_exceeded", None
    if key in too_far:
        return "failed", "redirect-limit"
    if is_visited:
        kind, *rest = terrain.pages[key]
        if kind == "error":
            return rest[0], "test"
        if kind == "redirect":
            chain, here = [key], key
            while here in redirects and len(chain) <= 11:
                here = redirects[here]
                if here in chain:
                    return "failed", "redirect-loop"
                chain.append(here)
            if len(chain) - 1 > 10 or here in too_far:
                return "failed", "redirect-limit"
        return "processed", None
    if key not in terrain.families.get(domain(key), {key}):
        return "failed", "trap-similar-paths"
    for cap in CAPS:
        if key not in terrain.caps.get(cap.name, {key}) and re.search(cap.pattern, key):
            return "failed", "cap-reached"
    return _CLOSED_AS.get(closed.get(domain(key)), ("queued", None))


def results_of(terrain: Terrain, reading: Reading, run: int = 1) -> list[Result]:
    """What fetchers would have written: one result for each page that the rules let them visit."""
    results: list[Result] = []
    for key, (state, _slug) in sorted(reading.pages.items()):
        is_visit = state not in ("blacklisted", "stubbed", "discovered", "depth_exceeded", "queued")
        if not is_visit or key in terrain.unvisited or key not in terrain.pages:
            continue
        results.append(result_of(terrain, key, run))
    for host, closures in terrain.closed.items():
        results += [DomainEvent(run, host, AT, "closed", detail=str(n), closes=c) for n, c in enumerate(closures)]
    for host, spared in terrain.families.items():
        error = "trap-similar-paths: had its share"
        results.append(FamilyEvent(run, host, AT, f"{host}/#", error, 5000, tuple(sorted(spared))))
    for cap in CAPS:
        if cap.name in terrain.caps:
            unit, spare = CapUnit(cap, ""), tuple(sorted(terrain.caps[cap.name]))
            results.append(FamilyEvent(run, "", AT, unit.family, unit.error, 5000, spare, rule_text(cap)))
    return results


def result_of(terrain: Terrain, key: str, run: int = 1) -> PageResult:
    kind, *rest = terrain.pages[key]
    common = {"run": run, "key": key, "wire": key, "domain": domain(key), "at": AT, "closes": terrain.closers.get(key)}
    if kind == "links":
        return PageResult(**common, state="processed", status=200, base=key, hrefs=tuple(rest[0]), nofollow=rest[1])
    if kind == "redirect":
        return PageResult(**common, state="processed", status=301, redirect=rest[0])
    return PageResult(**common, state=rest[0], error="test: made up")


def ingest_all(
    config: Config, results: list[Result], batch: int = 3, *, started: bool = True, forgetful: bool = False
) -> Path:
    """A database built from these results in this order; `forgetful`: by a new process for every batch."""
    store = Store(config.map_place, config)
    updater = MapUpdater(config, store)
    everything: list[Result] = [RunEvent(1, AT, "started"), *results] if started else results
    for start in range(0, len(everything), batch):
        updater.apply_batch([(result, dump(result)) for result in everything[start : start + batch]])
        updater.commit()
        if forgetful:
            store.close()
            store = Store(config.map_place, config)
            updater = MapUpdater(config, store)
    store.close()
    return config.output.database_path


def read_database(path: Path) -> Reading:
    db = sqlite3.connect(path)
    try:
        pages = {
            url: (state, error.split(":")[0] if error else None)
            for url, state, error in db.execute("SELECT url, state, error_message FROM pages")
        }
        depths = {
            (url, origin): depth
            for url, origin, depth in db.execute(
                "SELECT url, quality_origin, page_depths.depth FROM page_depths JOIN pages ON pages.id = page_id"
            )
        }
        links = set(
            db.execute(
                "SELECT a.url, b.url, kind FROM links JOIN pages a ON a.id = from_page_id"
                " JOIN pages b ON b.id = to_page_id"
            ).fetchall()
        )
        references = {}
        for urls, referrers, column in (
            ("blacklisted_urls", "blacklisted_referrers", "blacklisted_url_id"),
            ("stubbed_urls", "stubbed_referrers", "stubbed_url_id"),
        ):
            for number, url, count in db.execute(f"SELECT id, url, reference_count FROM {urls}").fetchall():
                who = db.execute(
                    f"SELECT url FROM {referrers} JOIN pages ON pages.id = referrer_page_id WHERE {column} = ?",
                    (number,),
                )
                references[url] = (count, frozenset(row[0] for row in who))
        frontier = dict(
            db.execute("SELECT url, priority FROM frontier JOIN pages ON pages.id = frontier.page_id").fetchall()
        )
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        for table, column in (
            ("links", "from_page_id"),
            ("links", "to_page_id"),
            ("page_depths", "page_id"),
            ("frontier", "page_id"),
            ("blacklisted_referrers", "referrer_page_id"),
            ("stubbed_referrers", "referrer_page_id"),
        ):
            orphans = f"SELECT count(*) FROM {table} WHERE {column} > 0 AND {column} NOT IN (SELECT id FROM pages)"
            assert db.execute(orphans).fetchone() == (0,), f"{table}.{column} names a page that is not there"
        summed_up = (
            "SELECT (from_domain_id << 32) | to_domain_id, from_domain_id, to_domain_id, sum(links) FROM ("
            " SELECT from_domain_id, to_domain_id, links FROM domain_links"
            " UNION ALL SELECT from_domain_id, to_domain_id, 1 FROM unsummed_links) GROUP BY 1 ORDER BY 1"
        )
        counted = (
            "SELECT (a.domain_id << 32) | b.domain_id, a.domain_id, b.domain_id, count(*) FROM links"
            " JOIN pages a ON a.id = from_page_id JOIN pages b ON b.id = to_page_id GROUP BY 1 ORDER BY 1"
        )
        assert db.execute(summed_up).fetchall() == db.execute(counted).fetchall()
        nearest = dict(db.execute("SELECT url, depth FROM pages").fetchall())
        for url, depth in nearest.items():
            mine = [d for (u, _), d in depths.items() if u == url]
            assert depth == (min(mine) if mine else None), url
        return Reading(pages, depths, links, references, frontier)
    finally:
        db.close()
