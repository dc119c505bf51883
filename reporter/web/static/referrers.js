/* All pages that link to a page, or those of one domain: ?url=…&from=… */

import { get } from "/static/api.js";
import { csvLink, domainLink, make, moreButton, pageLink, put, shown, table, to } from "/static/dom.js";
import { blank, start } from "/static/shell.js";

const { url, from, run } = Object.fromEntries(new URLSearchParams(location.search));

start(async (main) => {
  if (!url) {
    put(main, blank("Which page?", make("p", {}, "Look for it in ", make("a", { href: "/pages" }, "Pages"), ".")));
    return;
  }
  const list = make("div", { class: "stack", "aria-live": "polite" });
  put(main,
    make("div", { class: "head" }, make("div", {}, make("h1", {}, "Pages that link to one page"),
      make("p", {}, pageLink(url, ...shown(url))),
      from ? make("p", {}, "Only those of ", domainLink(from), "; ", make("a", { href: to("/referrers", { url, run }) }, "show all"), ".") : ""),
    make("div", { class: "actions" }, csvLink("referrers", { url, from, run }))),
    list);
  await fill(list, 0);
});

async function fill(list, after) {
  const found = await get("/api/pages/referrers", { url, from, run, after });
  if (!found.referrers.length && !after) {
    list.append(make("p", { class: "empty" }, "No page of this run links here."));
    return;
  }
  list.append(make("section", { class: "card" }, table([
    { name: "Page", cell: (row) => [pageLink(row.url, ...shown(row.title || row.url)), row.title ? make("span", { class: "sub" }, ...shown(row.url)) : null] },
    { name: "Link", cell: (row) => [row.text ? ["“", ...shown(row.text), "” "] : "", row.kind === "link" ? "" : row.kind].flat() },
    { name: "Domain", cell: (row) => domainLink(row.domain) },
  ], found.referrers, { label: "Pages that link here" })));
  if (found.next) list.append(moreButton(() => fill(list, found.next)));
}
