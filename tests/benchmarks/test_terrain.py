"""The terrain of the benchmarks: the same everywhere, as heavy as it says, and all of it within reach."""

from __future__ import annotations

import pickle
import statistics

import lxml.html

from benchmarks.growing import GrowingWeb
from benchmarks.terrain import HUB, ScaledTerrain, Shape, host_of, path_of

SMALL = Shape(seed=1, sites=40, pages=20)


def test_the_same_seed_draws_the_same_pages_in_every_process() -> None:
    one, other = ScaledTerrain(SMALL), pickle.loads(pickle.dumps(ScaledTerrain(SMALL)))
    for site, page in ((0, 0), (7, 3), (39, 19)):
        wanted = host_of(site), "GET", path_of(page)
        assert one.answer(*wanted) == other.answer(*wanted)
    another = ScaledTerrain(Shape(seed=2, sites=40, pages=20))
    assert another.answer(host_of(7), "GET", path_of(3)) != one.answer(host_of(7), "GET", path_of(3))


def test_a_drawn_terrain_travels_as_its_shape() -> None:
    terrain = ScaledTerrain(SMALL)
    terrain.answer(HUB, "GET", "/")
    assert len(pickle.dumps(terrain)) < 1000


def test_pages_have_the_sizes_and_link_counts_that_the_targets_speak_of() -> None:
    terrain = ScaledTerrain(Shape(sites=200, pages=30))
    links = terrain.drawn.links
    assert 40 <= statistics.median(links) <= 50
    assert 90 <= statistics.mean(links) <= 110
    sizes = [
        len(terrain.answer(host_of(site), "GET", path_of(page)).data) for site in range(0, 200, 4) for page in range(30)
    ]
    assert 36_000 <= statistics.mean(sizes) <= 46_000


def test_every_page_can_be_reached_from_the_hub() -> None:
    terrain = ScaledTerrain(SMALL)
    start = f"https://{HUB}/"
    found, todo = {start}, [start]
    while todo:
        url = todo.pop()
        _, _, host, path = url.split("/", 3)
        data = terrain.answer(host, "GET", "/" + path).data
        assert data.startswith(b"HTTP/1.1 200"), url
        document = lxml.html.document_fromstring(data.partition(b"\r\n\r\n")[2])
        for href in document.xpath("//a/@href"):
            target = href if "://" in href else f"https://{host}{href}"
            if ".bench.test/" in target and target not in found and not href.startswith("mailto:"):
                found.add(target)
                todo.append(target)
    assert found == set(terrain.urls())


def test_head_announces_the_size_that_get_delivers() -> None:
    terrain = ScaledTerrain(SMALL)
    head = terrain.answer(host_of(3), "HEAD", path_of(2)).data
    get = terrain.answer(host_of(3), "GET", path_of(2)).data
    assert get.startswith(head)
    assert b"Content-Length: %d\r\n" % (len(get) - len(head)) in head
    assert terrain.answer(host_of(3), "HEAD", path_of(2)).data == head


def test_generated_results_visit_each_page_once_and_only_what_was_found_before() -> None:
    web = GrowingWeb(domains=300)
    known = {web.url(number) for number in range(3)}
    visited: set[str] = set()
    for result in web.results(20_000):
        assert result.key in known
        assert result.key not in visited
        visited.add(result.key)
        known.update(result.hrefs)
    assert len(known) >= 20_000
