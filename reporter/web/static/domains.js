/* Domains: the most linked first, 50 at a time. */

import { get } from "/static/api.js";
import { domainLink, dot, make, put, shown, table } from "/static/dom.js";
import { start } from "/static/shell.js";
import { CLASSES, number } from "/static/words.js";

let asked = 0;

start(async (main) => {
  const filled = new URLSearchParams(location.search);
  const list = make("div", { class: "stack", "aria-live": "polite" });
  const form = make("form", { class: "filters", role: "search", onsubmit: (event) => {
    event.preventDefault();
    const kept = [...new FormData(form)].filter(([, value]) => value.trim() !== "");
    history.pushState(null, "", `/domains${kept.length ? `?${new URLSearchParams(kept)}` : ""}`);
    fill(list);
  } },
  make("label", { class: "field wide" }, "Name contains", make("input", { name: "q", type: "search", value: filled.get("q") || "", autocapitalize: "none", spellcheck: "false" })),
  make("label", { class: "field" }, "Class", make("select", { name: "class" }, make("option", { value: "" }, "any"), ...Object.entries(CLASSES).map(([value, word]) => make("option", { value, selected: filled.get("class") === value }, word)))),
  make("button", { class: "primary", type: "submit" }, "Show"));
  form.querySelector("select").addEventListener("change", () => form.requestSubmit());
  put(main, make("div", { class: "head" }, make("div", {}, make("h1", {}, "Domains"), make("p", {}, "Every domain that the run has seen."))), form, list);
  window.addEventListener("popstate", () => location.reload());
  await fill(list);
});

async function fill(list, after = undefined) {
  asked += 1;
  const mine = asked;
  const query = Object.fromEntries(new URLSearchParams(location.search));
  if (after === undefined) put(list, make("p", { class: "empty", role: "status" }, "Looking …"));
  const found = await get("/api/domains", { q: query.q, class: query.class, limit: 50, after });
  if (mine !== asked) return;
  if (after === undefined) list.replaceChildren();
  if (!found.domains.length && after === undefined) {
    list.append(make("p", { class: "empty" }, "No domain is like that."));
    return;
  }
  const pages = (row, value, state) => (value ? make("a", { href: `/pages?${new URLSearchParams({ domain: row.domain, ...(state ? { state } : {}) })}` }, number(value)) : "0");
  list.append(table([
    { name: "Domain", cell: (row) => [dot(row.class), domainLink(row.domain, ...shown(row.unicode ? `${row.unicode} (${row.domain})` : row.domain))] },
    { name: "Class", cell: (row) => CLASSES[row.class] || row.class },
    { name: "Crawled", isNumber: true, cell: (row) => pages(row, row.crawled, "processed") },
    { name: "Known", isNumber: true, cell: (row) => pages(row, row.known) },
    { name: "Waiting", isNumber: true, cell: (row) => pages(row, row.waiting, "queued") },
    { name: "Failed", isNumber: true, cell: (row) => pages(row, row.errors, "errors") },
    { name: "Requests", isNumber: true, cell: (row) => number(row.requests) },
    { name: "Closed", cell: (row) => row.closed || "" },
  ], found.domains, { label: "Domains" }));
  if (found.next) {
    const more = make("button", { type: "button", onclick: () => {
      more.remove();
      fill(list, found.next);
    } }, "Show more");
    list.append(make("div", {}, more));
  }
}
