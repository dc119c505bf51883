"""Links to dead and to permanently redirected pages."""

from __future__ import annotations

from pathlib import Path

from crawler.database.reader import open_map
from reporter.queries import broken_links, domain_links, overview
from tests.reporter.terrain import FOLLOWED, REDIRECT, MapBuilder


def test_a_chain_of_permanent_redirects_is_followed_to_its_end_and_a_loop_is_left(tmp_path: Path) -> None:
    builder = MapBuilder(tmp_path / "map.db")
    names = [f"https://q.test/{number}" for number in range(5)]
    numbers = [builder.page(url) for url in names]
    # 0 → 1 → 2 ends; 3 → 4 → 3 does not.
    for source, target in ((0, 1), (1, 2), (3, 4), (4, 3)):
        builder.db.execute(
            "UPDATE pages SET redirect_to = ?, status_code = 301 WHERE id = ?", (numbers[target], numbers[source])
        )
        builder.link(names[source], names[target], REDIRECT)
    dead = builder.page("https://q.test/gone", "dead_link")
    builder.link(names[2], "https://q.test/gone", FOLLOWED)
    builder.link(names[2], names[0], FOLLOWED)
    with open_map(builder.save()) as reader:
        domain_links.mark_quality(reader, overview.domains(reader).values())
        broken_links.mark_broken(reader, 1)
        gone, _, moved = broken_links.broken_links(reader, 1)
        ends = broken_links.moved_to(reader, [numbers[0], numbers[1], numbers[2], numbers[3]])
    assert [(link.target, link.pages, link.examples) for link in gone] == [(dead, 1, (numbers[2],))]
    assert [link.target for link in moved] == [numbers[0]]  # the redirects themselves are no links to mend
    assert ends == {numbers[0]: numbers[2], numbers[1]: numbers[2], numbers[2]: numbers[2], numbers[3]: numbers[4]}
