/* One domain: its class and the rule behind it, its pages, who links here, what was decided. */

import { get } from "/static/api.js";
import { decide } from "/static/decide.js";
import { card, dot, facts, make, outside, pageLink, put, shown, table, to } from "/static/dom.js";
import { blank, start } from "/static/shell.js";
import { CLASSES, counted, moment, number, waitWord } from "/static/words.js";

const asked = new URLSearchParams(location.search).get("domain") || "";

start(async (main, me) => {
  if (!asked) {
    put(main, blank("Which domain?", make("p", {}, "Look for it in ", make("a", { href: "/domains" }, "Domains"), ".")));
    return;
  }
  const domain = await get("/api/explain", { domain: asked });
  document.title = `${domain.unicode || domain.domain} · Sumi-Ripple`;
  const fitting = { discovered: ["accept", "reject", "stub"], stubbed: ["accept", "reject"], blacklisted: ["accept", "stub"], quality: [] }[domain.class] || [];
  const again = () => location.reload();
  const buttons = me.role === "admin" ? fitting.map((word) => make("button", { type: "button", onclick: () => decide(word, domain.domain) }, word[0].toUpperCase() + word.slice(1))) : [];
  if (me.role === "admin" && domain.rule) buttons.push(make("button", { type: "button", onclick: () => decide("note", domain.rule, { note: domain.note, tags: domain.tags, onDone: again }) }, "Note and tags"));
  put(main,
    make("div", { class: "head" },
      make("div", {}, make("h1", {}, ...shown(domain.unicode ? `${domain.unicode} (${domain.domain})` : domain.domain)),
        make("p", {}, dot(domain.class), CLASSES[domain.class] || domain.class, domain.title ? [" · ", ...shown(domain.title)] : "")),
      make("div", { class: "actions" },
        domain.is_known ? make("a", { class: "button", href: `/map?${new URLSearchParams({ select: domain.domain })}` }, "On the map") : null,
        domain.is_known ? make("a", { class: "button", href: `/map?${new URLSearchParams({ level: "pages", domain: domain.domain })}` }, "Its pages on the map") : null, ...buttons)),
    domain.is_known ? null : make("div", { class: "notice" }, make("p", {}, "This domain is not on the map: no run has seen a link to it.")),
    make("div", { class: "grid" },
      card("Domain", facts([
        ["Class", CLASSES[domain.class] || domain.class],
        ["Decided by", domain.rule ? shown(`${domain.rule} in [[${domain.rule_list}]]${domain.rule_line ? `, line ${domain.rule_line}` : ""}`) : "no rule: found by links"],
        ["Note", domain.note ? shown(domain.note) : null],
        ["Tags", domain.tags.length ? domain.tags.map((tag) => [make("span", { class: "tag" }, ...shown(tag, 60)), " "]).flat() : null],
        ["Pages known", domain.pages ? make("a", { href: `/pages?${new URLSearchParams({ domain: domain.domain })}` }, number(domain.pages)) : "0"],
        ["Pages crawled", domain.crawled ? make("a", { href: `/pages?${new URLSearchParams({ domain: domain.domain, state: "processed" })}` }, number(domain.crawled)) : "0"],
        ["Not crawled", domain.why.length ? domain.why.map((line) => make("div", {}, ...shown(line))) : null],
        ["Least depth", domain.depth === null ? null : number(domain.depth)],
        ["Closed early", domain.closed ? make("a", { href: to("/domains", { closed: "true", reason: domain.closed }) }, waitWord(domain.closed)) : null],
        ["Requests in this run", domain.requests ? make("a", { href: to("/pages", { domain: domain.domain }) }, number(domain.requests)) : "0"],
        ["robots.txt", domain.robots ? shown(`${domain.robots}${domain.crawl_delay ? `, Crawl-delay ${domain.crawl_delay} s` : ""}${domain.robots_at ? `, ${moment(domain.robots_at)}` : ""}`) : null],
        ["Site", outside(`https://${domain.domain}/`, "open")],
      ])),
      card(`Linked from ${counted(domain.quality_domains, "quality domain")}`,
        domain.referrers.length ? [make("p", { class: "muted small" }, `${counted(domain.links, "link")}; some of the pages:`), table([
          { name: "Page", cell: (row) => pageLink(row.page, ...shown(row.page)) },
          { name: "Links to", cell: (row) => pageLink(row.target, ...shown(row.target)) },
          { name: "Text", cell: (row) => shown(row.text || "") },
        ], domain.referrers, { label: "Pages that link here" }), domain.quality_domains ? make("p", { class: "small" }, make("a", { href: to("/map", { select: domain.domain }) }, "On the map: all domains that link here, and the page links behind each")) : ""] : make("p", { class: "muted" }, "None.")),
      ...[["Sitemaps", domain.sitemaps], ["Lists", domain.lists], ["Archives", domain.archives]].map(([name, lines]) =>
        (lines?.length ? card(name, make("ul", { class: "plain rows" }, lines.map((line) => make("li", { class: "url" }, ...shown(line))))) : null)),
    ),
  );
});
