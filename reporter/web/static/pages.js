/* Pages: filters, full-text search over titles and URLs, 50 at a time. The address holds the filters. */

import { get } from "/static/api.js";
import { csvLink, domainLink, make, moreButton, put, shown, table, to } from "/static/dom.js";
import { start } from "/static/shell.js";
import { CLASSES, number, STATES, stateTone, stateWord } from "/static/words.js";

const FILTERS = ["q", "state", "class", "depth", "domain", "status", "error", "origin", "run"];
let asked = 0; // number of the newest question: answers to older ones are dropped

start(async (main) => {
  const filled = new URLSearchParams(location.search);
  const option = (name) => ([value, word]) => make("option", { value, selected: filled.get(name) === value }, word);
  const select = (name, label, entries) => make("label", { class: "field" }, label, make("select", { name }, make("option", { value: "" }, "any"), ...entries.map(option(name))));
  const form = make("form", { class: "filters", role: "search", onsubmit: (event) => {
    event.preventDefault();
    const kept = [...new FormData(form)].filter(([, value]) => value.trim() !== "");
    history.pushState(null, "", `/pages${kept.length ? `?${new URLSearchParams(kept)}` : ""}`);
    fill(list);
  } },
  make("label", { class: "field wide" }, "Words in title or URL", make("input", { name: "q", type: "search", value: filled.get("q") || "", placeholder: "three letters or more", autocomplete: "off", spellcheck: "false" })),
  make("label", { class: "field" }, "Domain", make("input", { name: "domain", value: filled.get("domain") || "", placeholder: "example.org", autocapitalize: "none", spellcheck: "false" })),
  select("state", "State", [["errors", "failed in any way"], ...Object.entries(STATES)]),
  select("class", "Class", Object.entries(CLASSES)),
  select("depth", "Depth", [0, 1, 2, 3, 4, 5, 6].map((value) => [String(value), String(value)])),
  select("origin", "Found by", ["seed", "linked", "sitemap", "archive", "speculated"].map((value) => [value, value])),
  ...Object.entries({ status: "Status code", error: "Kind of error", run: "Run" }).filter(([name]) => filled.get(name)).map(([name, words]) => make("label", { class: "field narrow" }, words, make("input", { name, value: filled.get(name) }))),
  make("button", { class: "primary", type: "submit" }, "Show"));
  for (const field of form.querySelectorAll("select")) field.addEventListener("change", () => form.requestSubmit());
  const csv = csvLink("pages");
  csv.id = "csv";
  const list = make("div", { id: "list", "aria-live": "polite" });
  put(main, make("div", { class: "head" }, make("div", {}, make("h1", {}, "Pages"), make("p", {}, "Every page that the run has seen, crawled or not.")),
    make("div", { class: "actions" }, csv)), form, list);
  window.addEventListener("popstate", () => location.reload());
  await fill(list);
});

const query = () => Object.fromEntries([...new URLSearchParams(location.search)].filter(([name]) => FILTERS.includes(name)));

async function fill(list) {
  asked += 1;
  const mine = asked;
  document.getElementById("csv").href = to("/api/export/pages.csv", query());
  put(list, make("p", { class: "empty", role: "status" }, "Looking …"));
  let found;
  try {
    found = await get("/api/pages", { ...query(), limit: 50 });
  } catch (problem) {
    if (mine !== asked) return;
    const isComing = problem.status === 503 && problem.retryAfter;
    put(list, make("div", { class: `notice ${isComing ? "" : "is-warn"}`, role: isComing ? "status" : "alert" }, make("p", {}, problem.message, isComing ? " …" : "")));
    if (isComing) window.setTimeout(() => mine === asked && fill(list), problem.retryAfter * 1000);
    return;
  }
  if (mine !== asked) return;
  const about = found.note ? make("p", { class: "muted small" }, ...shown(found.note)) : "";
  if (!found.pages.length && !found.next) {
    put(list, about, make("p", { class: "empty" }, Object.keys(query()).length ? "No page is like that." : "No page is known yet."));
    return;
  }
  const rows = make("div", { class: "stack" });
  put(list, about, rows);
  append(rows, found);
}

function append(rows, found) {
  if (found.pages.length) rows.append(pagesTable(found.pages));
  if (found.next) rows.append(moreButton(async () => append(rows, await get("/api/pages", { ...query(), limit: 50, after: found.next }))));
}

function pagesTable(pages) {
  return table([
    { name: "Page", cell: (row) => [make("a", { href: to("/page", { url: row.url, run: query().run }), class: "url" }, ...shown(row.title || row.url)), row.title ? make("span", { class: "sub" }, ...shown(row.url)) : null] },
    { name: "State", cell: (row) => [make("span", { class: `tag ${stateTone(row.state)}` }, stateWord(row.state)), row.error ? make("span", { class: "sub" }, ...shown(row.error, 90)) : null] },
    { name: "Status", isNumber: true, cell: (row) => (row.status ? String(row.status) : "") },
    { name: "Depth", isNumber: true, cell: (row) => (row.depth === null || row.depth === undefined ? "–" : number(row.depth)) },
    { name: "Domain", cell: (row) => domainLink(row.domain) },
  ], pages, { label: "Pages" });
}
