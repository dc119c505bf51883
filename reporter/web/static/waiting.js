/* Domains that wait, each with the reason; the address holds the reason that is shown. */

import { get } from "/static/api.js";
import { csvLink, domainLink, make, put, refresh, shown, table, to } from "/static/dom.js";
import { start } from "/static/shell.js";
import { counted, number, until, waitWord } from "/static/words.js";

const EVERY = 5000; // milliseconds
const MOST = 500;
const reason = new URLSearchParams(location.search).get("reason") || "";

start(async (main) => {
  const list = make("div", { class: "stack" });
  put(main,
    make("div", { class: "head" }, make("div", {}, make("h1", {}, "Domains that wait"), make("p", {}, "Domains with pages to visit in the run under way, and what each of them waits for. The longest wait comes first.")),
      make("div", { class: "actions" }, csvLink("waiting", { reason }))),
    list);
  await fill(list);
  window.setInterval(() => document.hidden || fill(list).catch(() => {}), EVERY); // one that fails is made good by the next
});

async function fill(list) {
  const found = await get("/api/frontier/waiting", { reason, limit: MOST });
  const choice = (value, words, count) => make("a", { class: "button", href: to("/waiting", { reason: value }), "aria-current": value === reason ? "true" : null }, `${words} ${number(count)}`);
  const count = reason ? found.reasons[reason] || 0 : found.total;
  refresh(list,
    make("nav", { class: "actions", "aria-label": "Reasons" }, choice("", "all", found.total), Object.entries(found.reasons).sort((a, b) => b[1] - a[1]).map(([name, value]) => choice(name, waitWord(name), value))),
    reason && found.words[reason] ? make("p", { class: "muted" }, `Each waits for ${found.words[reason]}.`) : "",
    found.domains.length ? make("section", { class: "card" }, table([
      { name: "Domain", cell: (row) => domainLink(row.domain) },
      { name: "Waits for", cell: (row) => shown(row.words) },
      { name: "Until", isNumber: true, cell: (row) => until(row.seconds) },
      { name: "Pages", isNumber: true, cell: (row) => make("a", { href: to("/pages", { domain: row.domain, state: "queued" }) }, number(row.pages)) },
    ], found.domains, { label: "Domains that wait" })) : make("p", { class: "empty" }, reason ? "No domain waits for that now." : "No domain waits now."),
    count > found.domains.length ? make("p", { class: "muted small" }, `The first ${number(found.domains.length)} of ${counted(count, "domain")}; the CSV has all.`) : "");
}
