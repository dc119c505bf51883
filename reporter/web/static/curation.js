/* Curation: candidates as a work list, the log of decisions with undo, dead and moved links by quality domain. */

import { get, post } from "/static/api.js";
import { decide } from "/static/decide.js";
import { csvLink, domainLink, make, moreButton, pageLink, put, shown, table, to } from "/static/dom.js";
import { attempt, start, tell } from "/static/shell.js";
import { counted, moment, number } from "/static/words.js";

const MOST = 500; // candidates in one answer
const PAST = { accept: "accepted", reject: "rejected", stub: "stubbed", note: "noted" };
let me = null;

start(async (main, person) => {
  me = person;
  const candidates = make("section", { class: "card", id: "candidates" });
  const log = make("section", { class: "card", id: "log" });
  const broken = make("section", { class: "card", id: "broken" });
  put(main,
    make("div", { class: "head" }, make("div", {}, make("h1", {}, "Curation"),
      make("p", {}, "Discovered domains that your quality domains point to. A decision is shown by a replay first, then written to the config; it takes effect with the next crawl.")),
    make("div", { class: "actions" }, csvLink("candidates", {}, "Candidates as CSV"), csvLink("links-to-mend", {}, "Links to mend as CSV"))),
    make("div", { class: "stack" }, candidates, log, broken));
  await Promise.all([showCandidates(candidates), showLog(log), showBroken(broken)]);
  if (location.hash) document.querySelector(location.hash)?.scrollIntoView();
});

async function showCandidates(place, limit = 25) {
  const [found, log] = await Promise.all([get("/api/candidates", { limit }), get("/api/curate/log")]);
  const decided = new Map(log.decisions.map((row) => [row.domain, row.decision]).reverse());
  put(place, make("h2", {}, `Candidates (${number(found.total)})`));
  if (!found.candidates.length) {
    place.append(make("p", { class: "empty" }, "No discovered domain is linked to by a quality domain."));
    return;
  }
  const again = () => Promise.all([showCandidates(place, limit), showLog(document.getElementById("log"))]);
  const columns = [
    { name: "Domain", cell: (row) => [domainLink(row.domain, ...shown(row.unicode ? `${row.unicode} (${row.domain})` : row.domain)), row.title ? make("span", { class: "sub" }, ...shown(row.title, 120)) : null] },
    { name: "Quality domains", isNumber: true, cell: (row) => make("a", { href: to("/map", { select: row.domain }) }, number(row.quality_domains)) },
    { name: "Links", isNumber: true, cell: (row) => make("a", { href: to("/domain", { domain: row.domain }) }, number(row.links)) },
    { name: "Pages", isNumber: true, cell: (row) => make("a", { href: `/pages?${new URLSearchParams({ domain: row.domain })}`, "aria-label": `${row.crawled} of ${row.known} pages of ${row.domain}` }, `${number(row.crawled)} of ${number(row.known)}`) },
    { name: "Linked from", cell: (row) => [...row.referrers.slice(0, 1).flatMap((each) => [pageLink(each.page, ...shown(each.page, 80)), each.text ? make("span", { class: "sub" }, "“", ...shown(each.text, 80), "”") : null]), row.why.length ? make("span", { class: "sub" }, ...shown(row.why.join("; "), 140)) : null] },
  ];
  if (me.role === "admin") {
    columns.push({ name: "Decide", cell: (row) => (decided.has(row.domain) ? make("span", { class: "tag is-good" }, `${PAST[decided.get(row.domain)]}, from the next crawl on`) : make("div", { class: "actions" }, ["accept", "reject", "stub"].map((word) =>
      make("button", { type: "button", "aria-label": `${word} ${row.domain}`, onclick: () => decide(word, row.domain, { onDone: () => attempt(again) }) }, word)))) });
  }
  place.append(table(columns, found.candidates, { label: "Candidates" }));
  if (found.total > found.candidates.length) {
    place.append(limit < MOST ? moreButton(() => showCandidates(place, Math.min(limit * 4, MOST))) : make("p", { class: "muted small" }, `The first ${number(MOST)}; the CSV has all.`));
  }
}

async function showLog(place) {
  const found = await get("/api/curate/log");
  put(place, make("h2", {}, "Decisions"));
  if (!found.decisions.length) {
    place.append(make("p", { class: "empty" }, "Nothing has been decided yet."));
    return;
  }
  place.append(table([
    { name: "When", cell: (row) => moment(row.at) },
    { name: "Decision", cell: (row) => [row.decision, " ", domainLink(row.domain)] },
    { name: "Take back", cell: (row) => (row === found.decisions[0] && me.role === "admin" ? make("button", { type: "button", "aria-label": `Undo ${row.decision} ${row.domain}`, onclick: () => attempt(async () => {
      await post("/api/curate/undo", { domain: row.domain });
      tell(`Taken back: ${row.decision} ${row.domain}.`);
      await Promise.all([showLog(place), showCandidates(document.getElementById("candidates"))]);
    }) }, "Undo") : make("span", { class: "muted small" }, "after those above it")) },
  ], found.decisions, { label: "Decisions" }));
}

const KINDS = { dead: "gone", unreachable: "not reachable", moved: "moved for good" };

/** Links of quality domains that their owners may want to change, by domain; a page has all of its referrers. */
async function showBroken(place) {
  const found = await get("/api/links/mending");
  const rows = Object.keys(KINDS).flatMap((kind) => found[kind].map((row) => ({ ...row, kind })));
  const domains = [...new Set(rows.map((row) => row.domain))].sort();
  put(place, make("h2", {}, `Links of quality domains to mend (${number(rows.length)})`));
  if (!rows.length) place.append(make("p", { class: "empty" }, "Every link of your quality domains leads somewhere."));
  for (const domain of domains) {
    const own = rows.filter((row) => row.domain === domain);
    place.append(make("h3", {}, domainLink(domain), ` ${counted(own.length, "link")}`), table([
      { name: "Link", cell: (row) => [pageLink(row.url, ...shown(row.url)), row.target ? make("span", { class: "sub" }, "→ ", pageLink(row.target, ...shown(row.target))) : null] },
      { name: "Why", cell: (row) => [KINDS[row.kind], row.why && row.kind !== "moved" ? make("span", { class: "sub" }, ...shown(row.why)) : null] },
      { name: "On pages", isNumber: true, cell: (row) => make("a", { href: to("/referrers", { url: row.url, from: domain }) }, number(row.pages)) },
      { name: "For example", cell: (row) => row.examples.slice(0, 2).map((url) => make("span", { class: "sub" }, pageLink(url, ...shown(url, 90)))) },
    ], own.slice(0, 40), { label: `Links to mend of ${domain}` }));
    if (own.length > 40) place.append(make("p", { class: "muted small" }, `and ${number(own.length - 40)} more in the CSV`));
  }
}
