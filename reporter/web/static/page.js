/* One page: why it is as it is, the paths to it, who links here, and its stored text. */

import { get } from "/static/api.js";
import { card, domainLink, facts, make, outside, pageLink, put, shown, table, to } from "/static/dom.js";
import { blank, start } from "/static/shell.js";
import { bytes, CLASSES, counted, moment, number, stateTone, stateWord } from "/static/words.js";

const { url: asked = "", run } = Object.fromEntries(new URLSearchParams(location.search));

start(async (main) => {
  if (!asked) {
    put(main, blank("Which page?", make("p", {}, "Look for it in ", make("a", { href: "/pages" }, "Pages"), ".")));
    return;
  }
  const page = await get("/api/explain", { url: asked, run });
  document.title = `${page.title || page.key} · Sumi-Ripple`;
  put(main,
    make("div", { class: "head" },
      make("div", {}, make("h1", {}, ...shown(page.title || page.key)),
        make("p", { class: "url" }, outside(page.wire || page.key, ...shown(page.key)))),
      page.is_known ? make("div", { class: "actions" }, make("a", { class: "button", href: to("/map", { level: "surroundings", url: page.key, run }) }, "What is around it"), make("a", { class: "button", href: to("/map", { level: "paths", url: page.key, run }) }, "Paths on the map")) : null),
    page.is_known ? null : make("div", { class: "notice" }, make("p", {}, "This page is not on the map: no run has seen a link to it. What follows is what the config says.")),
    make("div", { class: "grid" }, stateCard(page), advice(page), pathsCard(page), linksCard(page), await storedCard(page)),
  );
});

function stateCard(page) {
  return card("State", facts([
    ["State", page.state ? make("span", { class: `tag ${stateTone(page.state)}` }, stateWord(page.state)) : "not on the map"],
    ["Why", page.error ? shown(page.error) : null],
    ["Status code", page.status ? make("a", { href: to("/pages", { status: page.status, run }) }, String(page.status)) : null],
    ["Judged", page.validation && page.validation !== "ok" ? shown(`${page.validation}: ${page.rejection_reason || ""}`) : null],
    ["Content type", page.content_type ? shown(page.content_type) : null],
    ["Redirects to", page.redirect_to ? pageLink(page.redirect_to, ...shown(page.redirect_to)) : null],
    ["Domain", [domainLink(page.domain), ` (${CLASSES[page.class] || page.class})`]],
    ["Decided by", page.rule ? shown(`${page.rule} in [[${page.rule_list}]]${page.rule_line ? `, line ${page.rule_line}` : ""}`) : null],
    ["Found by", page.origin],
    ["In the sitemap", page.in_sitemap ? shown(page.in_sitemap) : null],
    ["Next page of its list", page.next_page ? pageLink(page.next_page, ...shown(page.next_page)) : null],
    ["Visited", page.visited_at ? `${moment(page.visited_at)}, run ${page.visited_run}` : null],
    ["First found", page.discovered_at ? `${moment(page.discovered_at)}, run ${page.first_run}` : null],
    ["Last seen", page.last_run ? make("a", { href: to("/run", { run: page.last_run }) }, `run ${page.last_run}`) : null],
    ["Robots", robots(page.robots)],
    ["Trap", page.trap ? shown(page.trap) : null],
  ]));
}

function robots(found) {
  if (!found || found.allowed === null) return null;
  return shown(`${found.allowed ? "allowed" : "denied"}${found.rule ? ` by “${found.rule}”` : ""}${found.crawl_delay ? `, Crawl-delay ${found.crawl_delay} s` : ""}`);
}

function advice(page) {
  if (page.state === "processed" || (!page.to_be_crawled?.length && !page.turn)) return null;
  const rows = page.to_be_crawled.map((line) => make("li", {}, ...shown(line, 600)));
  return card("To have it crawled", page.turn?.words ? make("p", {}, ...shown(page.turn.words)) : null, make("ul", { class: "plain rows" }, rows));
}

function pathsCard(page) {
  if (!page.depths.length) return page.is_known ? card("Depth", make("p", { class: "muted" }, "No followed path from a quality domain leads here.")) : null;
  return card("Depth, with a shortest path", make("ul", { class: "plain rows" }, page.depths.map((depth) => make("li", {},
    make("strong", {}, `${depth.depth} `), "from ", ...shown(depth.origin),
    depth.path.length ? make("ol", { class: "small" }, depth.path.map((step) => make("li", {}, pageLink(step.url, ...shown(step.url)), step.via === "redirect" ? " (by a redirect)" : ""))) : null))));
}

function linksCard(page) {
  if (!page.is_known) return null;
  if (!page.linked_from_total) return card("Linked from", make("p", { class: "muted" }, "No page of this run links here."));
  const all = make("a", { href: to("/referrers", { url: page.key, run }) }, counted(page.linked_from_total, "page"));
  return card(["Linked from ", all],
    table([
      { name: "Page", cell: (row) => pageLink(row.url, ...shown(row.url)) },
      { name: "Link", cell: (row) => [row.text ? ["“", ...shown(row.text), "” "] : "", row.kind === "link" ? "" : row.kind].flat() },
    ], page.linked_from, { label: "Pages that link here" }),
    page.linked_from.length < page.linked_from_total ? make("p", { class: "muted small" }, `The first ${number(page.linked_from.length)}.`) : null);
}

/** The stored content as text. It is never shown as the site's own HTML. */
async function storedCard(page) {
  if (!page.is_known) return null;
  const stored = await get("/api/pages/content", { url: page.key, run });
  if (!stored.is_stored) return page.state === "processed" ? card("Stored content", make("p", { class: "muted" }, `None: ${stored.why}.`)) : null;
  const box = card("Stored content, as text",
    make("p", { class: "muted small" }, `From run ${stored.run}, ${bytes(stored.bytes)} of HTML${stored.is_cut ? "; its beginning" : ""}`),
    make("pre", { tabindex: "0", "aria-label": "Stored content" }, ...stored.text.split("\n").flatMap((line) => [...shown(line, 200000), "\n"])));
  box.classList.add("wide");
  return box;
}
