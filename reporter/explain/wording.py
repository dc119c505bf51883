"""PURE. An explanation in words, for one screen."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from crawler.model.link_context import LinkContext
from crawler.model.shown_text import age_words, counted, domain_words, plain, size_words, text_words, url_words
from reporter.figures import is_listed, whole_seconds

if TYPE_CHECKING:
    from reporter.explain.facts import Cap, Explanation, PageFacts, Revisit

_LINKS_SHOWN = 6  # pages that link here
_SAME_SHOWN = 4  # pages with the same text


def in_words(facts: Explanation, *, is_uncut: bool = False) -> str:
    """The whole text; with `is_uncut` all pages that link here."""
    rows: list[tuple[str, str]] = []
    if facts.wire != facts.key:
        rows.append(("asked for as", url_words(facts.wire, 200)))
    rows.append(("class", _class_words(facts)))
    if facts.is_known:
        rows += [*_known_rows(facts), ("linked from", _links_words(facts, None if is_uncut else _LINKS_SHOWN))]
    else:
        rows.append(("state", "never seen" if facts.newest_run else "never seen: nothing has been crawled yet"))
        if facts.scope:
            rows.append(("scope", f"out of scope: {text_words(facts.scope, 200)}"))
        elif facts.trap:
            rows.append(("trap", text_words(facts.trap)))
        elif facts.family_closed:
            rows.append(("trap", text_words(facts.family_closed)))
    if facts.page_type:
        rows.append(("page type", plain(facts.page_type)))
    if facts.caps:
        rows.append(("caps", "\n".join(_cap_words(cap) for cap in facts.caps)))
    rows.append(("robots.txt", _robots_words(facts)))
    lines = [url_words(facts.key)]
    for name, value in rows:
        first, *others = value.split("\n")
        lines.append(f"  {name:<14}{first}")
        lines += [f"  {'':<14}{other}" for other in others]
    lines.append("")
    lines += [f"  {line}" for line in facts.to_be_crawled]
    return "\n".join(lines) + "\n"


def entry_words(name: str) -> str:
    """An entry of a list as the config has it."""
    domain, slash, path = name.partition("/")
    return f'domain = "{domain}"' + (f', path = "{slash}{path}"' if slash else "")


def _class_words(facts: Explanation) -> str:
    if facts.rule is None and facts.is_outside_parts:
        words = f"{facts.klass}: only other parts of {domain_words(facts.domain)} are in the quality list"
    elif facts.rule is None:
        words = f"{facts.klass}: {domain_words(facts.domain)} is in none of the lists"
    else:
        where = ""
        if facts.config:
            line = f":{facts.rule_line}" if facts.rule_line else ""
            where = f" ({PurePath(facts.config).name}{line})"
        words = f"{facts.klass}, by [[{facts.rule_list}]] {entry_words(facts.rule)}{where}"
    if facts.class_in_map and facts.class_in_map != facts.klass:
        words += f"\nin the map it is {facts.class_in_map}: the map was built under another config"
    return words


def _known_rows(facts: Explanation) -> list[tuple[str, str]]:
    rows = [("state", _state_words(facts))]
    if facts.error:
        rows.append(("error", text_words(facts.error, 200)))
    if facts.rejection_reason:
        rows.append(("rejected", f"{facts.validation}, {text_words(facts.rejection_reason, 200)}"))
    if facts.title:
        rows.append(("title", plain(facts.title, 100)))
    if facts.facts:
        rows += _content_rows(facts.facts)
    if facts.truncated:
        rows.append(("truncated", "its compressed body ended early: links and title are those of the part that came"))
    if facts.redirects_from_here:
        rows.append(("redirects to", "\n".join(url_words(url, 200) for url in facts.redirects_from_here[:3])))
    seen = f"first in run {facts.first_run}, last in run {facts.last_run}"
    if facts.last_run != facts.newest_run:
        seen += f"; run {facts.newest_run} has not seen it"
    rows.append(("seen", seen))
    if facts.revisit:
        rows.append(("next visit", _revisit_words(facts.revisit, facts.visited_run)))
    if facts.in_sitemap:
        changed = f", last changed {plain(facts.lastmod)}" if facts.lastmod else ""
        rows.append(("in a sitemap", f"{plain(facts.in_sitemap, 200)}{changed}"))
    if facts.next_page:
        why = "as the page itself says" if facts.next_by == "rel" else "by the number in its address"
        rows.append(("next page", f"{plain(facts.next_page, 200)} ({why})"))
    rows += _depth_rows(facts)
    return rows


def _content_rows(facts: PageFacts) -> list[tuple[str, str]]:
    """What the page says about itself, and who says the same."""
    kept = "not kept: it says noarchive" if facts.noarchive else "kept" if facts.stored else "not kept"
    language = f", in {plain(facts.language)}" if facts.language else ""
    size = f"{size_words(facts.bytes)}, {counted(facts.link_count, 'link')}"
    rows = [("content", f"{size}{language}; {kept} (run {facts.run})")]
    if facts.description:
        rows.append(("description", plain(facts.description, 160)))
    if facts.canonical:
        rows.append(("canonical", url_words(facts.canonical, 200)))
    for name, urls in (("same text as", facts.same_text), ("like", facts.near_text)):
        if urls:
            more = [f"and {counted(len(urls) - _SAME_SHOWN, 'other')}"] if len(urls) > _SAME_SHOWN else []
            rows.append((name, "\n".join([url_words(url, 200) for url in urls[:_SAME_SHOWN]] + more)))
    rows += [(plain(name, 13), plain(" · ".join(values), 200)) for name, values in facts.fields.items()]
    return rows


def _revisit_words(plan: Revisit, run: int | None) -> str:
    """When the page is due, why then, and whether the newest of its runs has visited it."""
    if plan.next_crawl_at is None:
        words = "with the next run: its last visit found no answer"
    else:
        interval = age_words(plan.interval) if plan.interval % 3600 == 0 else f"{plan.interval / 86_400:.1f} days"
        words = f"due at {whole_seconds(plain(plan.next_crawl_at))}; its interval is {interval}"
    changed = f"unchanged since {whole_seconds(plain(plan.changed_at))}"
    if plan.changed_at == plan.visited_at:
        changed = "its last visit found it new or changed"
    carried = f"\nnot due in run {run}, and carried into it without a visit" if run == plan.carried_run else ""
    return f"{words}\n{changed}{carried}"


def _state_words(facts: Explanation) -> str:
    words = str(facts.state)
    if facts.visited_run is not None:
        words += f" since run {facts.visited_run}"
        if facts.visited_at:
            words += f" ({whole_seconds(plain(facts.visited_at))})"
        if facts.status is not None:
            words += f", HTTP {facts.status}"
    elif facts.discovered_at:
        words += f", found in run {facts.first_run} ({whole_seconds(plain(facts.discovered_at))})"
    return words


def _depth_rows(facts: Explanation) -> list[tuple[str, str]]:
    if not facts.depths:
        words = "none: no followed path leads here from a quality domain"
        if facts.visited_run is not None and facts.visited_run == facts.last_run:
            place = "its list" if facts.origin == "speculated" else "its host"
            words += f";\nit was visited because {place} is within reach ([discovery] elsewhere)"
        return [("depth", words)]
    shown = [f"{entry.depth} from {domain_words(entry.origin)}" for entry in facts.depths[:4]]
    if len(facts.depths) > 4:
        shown.append(f"and from {counted(len(facts.depths) - 4, 'other')}")
    rows = [("depth", ", ".join(shown))]
    nearest = facts.depths[0]
    if nearest.path:
        arrows = {"start": "   ", "link": "-> ", "redirect": "=> "}
        steps = [f"{step.depth}  {arrows[step.via]}{url_words(step.url, 200)}" for step in nearest.path]
        if len(steps) > 9:
            steps = [*steps[:4], f"   … {len(steps) - 8} more …", *steps[-4:]]
        rows.append(("shortest path", "\n".join(steps)))
    else:
        rows.append(("shortest path", "not in the map any more: pages of the path have been crawled again"))
    return rows


def _links_words(facts: Explanation, most: int | None) -> str:
    if not facts.linked_from_total:
        origins = {
            "sitemap": "no page in the map: only a sitemap names it",
            "archive": "no page in the map: it was tried, because addresses of other pages show it",
            "speculated": "no page in the map: it was tried, after the last page of its list",
        }
        return origins.get(facts.origin or "", "no page in the map (a seed, or its links are gone)")
    marks = {"link": "", "nofollow": "  (not followed)", "redirect": "  (redirect)"}
    lines = [counted(facts.linked_from_total, "page")]
    shown = facts.linked_from[:most]
    for link in shown:
        about = LinkContext(link.text, link.rel).words
        lines.append(url_words(link.url, 200) + marks[link.kind] + (f"  {plain(about)}" if about else ""))
    if facts.linked_from_total > len(shown):
        lines.append(f"... and {counted(facts.linked_from_total - len(shown), 'more page')}: explain --all")
    return "\n".join(lines)


def _cap_words(cap: Cap) -> str:
    of = f" for {plain(cap.value, 100)}" if cap.per else ""
    return f"{cap.name}: {cap.visits:,} of {counted(cap.max_pages, 'visit')}{of} in the newest run"


def _robots_words(facts: Explanation) -> str:
    known = facts.robots
    if known.outcome is None:
        return "never requested: the domain is not visited" if is_listed(facts.klass) else "not requested yet"
    fetched = f" (fetched {whole_seconds(plain(known.fetched_at))})" if known.fetched_at else ""
    if known.outcome == "unreachable":
        return f"could not be read{fetched}"
    if known.outcome == "allow-all":
        return f"there is none: everything is allowed{fetched}"
    word = "allowed" if known.allowed else "denied"
    by = f" by `{plain(known.rule, 120)}`" if known.rule else ", no rule applies to it"
    delay = f"; Crawl-delay {known.crawl_delay:g} s" if known.crawl_delay else ""
    return f"{word}{by}{delay}{fetched}"
