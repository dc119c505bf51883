/* Domains: those with most pages first, or by another figure, 50 at a time. The address holds the filters. */

import { get } from "/static/api.js";
import { csvLink, domainLink, dot, make, moreButton, put, shown, table, to } from "/static/dom.js";
import { start } from "/static/shell.js";
import { CLASSES, counted, number, waitWord } from "/static/words.js";

const FILTERS = ["q", "class", "closed", "reason", "sort", "run"];
const SORTS = { known: "pages known", crawled: "pages crawled", waiting: "pages waiting", errors: "pages failed", requests: "requests", domain: "name" };
let asked = 0; // number of the newest question: answers to older ones are dropped

start(async (main) => {
  const filled = new URLSearchParams(location.search);
  const select = (name, label, entries) => make("label", { class: "field" }, label, make("select", { name }, ...entries.map(([value, word]) => make("option", { value, selected: filled.get(name) === value }, word))));
  const csv = csvLink("domains");
  csv.id = "csv";
  const list = make("div", { class: "stack", "aria-live": "polite" });
  const form = make("form", { class: "filters", role: "search", onsubmit: (event) => {
    event.preventDefault();
    const kept = [...new FormData(form)].filter(([, value]) => value.trim() !== "");
    history.pushState(null, "", `/domains${kept.length ? `?${new URLSearchParams(kept)}` : ""}`);
    fill(list);
  } },
  make("label", { class: "field wide" }, "Name contains", make("input", { name: "q", type: "search", value: filled.get("q") || "", autocapitalize: "none", spellcheck: "false" })),
  select("class", "Class", [["", "any"], ...Object.entries(CLASSES)]), select("closed", "Closed early", [["", "any"], ["true", "yes"], ["false", "no"]]),
  select("sort", "Sorted by", Object.entries(SORTS)),
  ...Object.entries({ reason: "Closed because", run: "Run" }).filter(([name]) => filled.get(name)).map(([name, words]) => make("label", { class: "field narrow" }, words, make("input", { name, value: filled.get(name) }))),
  make("button", { class: "primary", type: "submit" }, "Show"));
  for (const field of form.querySelectorAll("select")) field.addEventListener("change", () => form.requestSubmit());
  put(main, make("div", { class: "head" }, make("div", {}, make("h1", {}, "Domains"), make("p", {}, "Every domain that the run has seen.")), make("div", { class: "actions" }, csv)), form, list);
  window.addEventListener("popstate", () => location.reload());
  await fill(list);
});

const query = () => Object.fromEntries([...new URLSearchParams(location.search)].filter(([name]) => FILTERS.includes(name)));

async function fill(list) {
  asked += 1;
  const mine = asked;
  document.getElementById("csv").href = to("/api/export/domains.csv", { ...query(), sort: null });
  put(list, make("p", { class: "empty", role: "status" }, "Looking …"));
  let found;
  try {
    found = await get("/api/domains", { ...query(), limit: 50 });
  } catch (problem) {
    if (mine !== asked) return;
    const isComing = problem.status === 503 && problem.retryAfter;
    put(list, make("div", { class: `notice ${isComing ? "" : "is-warn"}`, role: isComing ? "status" : "alert" }, make("p", {}, problem.message, isComing ? " …" : "")));
    if (isComing) window.setTimeout(() => mine === asked && fill(list), problem.retryAfter * 1000);
    return;
  }
  if (mine !== asked) return;
  put(list, make("p", { class: "muted small" }, counted(found.total, "domain"), found.note ? `. ${found.note}` : ""));
  if (!found.domains.length) list.append(make("p", { class: "empty" }, "No domain is like that."));
  else append(list, found);
}

function append(list, found) {
  const pages = (row, value, state) => (value ? make("a", { href: to("/pages", { domain: row.domain, state, run: query().run }) }, number(value)) : "0");
  list.append(table([
    { name: "Domain", cell: (row) => [dot(row.class), domainLink(row.domain, ...shown(row.unicode ? `${row.unicode} (${row.domain})` : row.domain))] },
    { name: "Class", cell: (row) => CLASSES[row.class] || row.class },
    { name: "Crawled", isNumber: true, cell: (row) => pages(row, row.crawled, "processed") },
    { name: "Known", isNumber: true, cell: (row) => pages(row, row.known) },
    { name: "Waiting", isNumber: true, cell: (row) => pages(row, row.waiting, "queued") },
    { name: "Failed", isNumber: true, cell: (row) => pages(row, row.errors, "errors") },
    { name: "Requests", isNumber: true, cell: (row) => pages(row, row.requests) },
    { name: "Closed early", cell: (row) => (row.closed ? make("a", { href: to("/domains", { closed: "true", reason: row.closed, run: query().run }) }, waitWord(row.closed)) : "") },
  ], found.domains, { label: "Domains" }));
  if (found.next) list.append(moreButton(async () => append(list, await get("/api/domains", { ...query(), limit: 50, after: found.next }))));
}
