/* What changed from one run to another. */

import { get } from "/static/api.js";
import { csvLink, domainLink, make, pageLink, put, ripple, shown, table } from "/static/dom.js";
import { start } from "/static/shell.js";
import { counted, moment, number, STATES, stateWord } from "/static/words.js";

const HEADS = {
  "page-died": "Pages that died", "page-came-back": "Pages that came back", "page-moved": "Pages that moved", "page-title": "Pages with another title",
  "domain-class": "Domains of another class", "domain-reach": "Domains at another depth", "domain-new": "New domains", "domain-vanished": "Vanished domains",
  "domain-returned": "Returned domains", "page-new": "New pages", "page-vanished": "Vanished pages", "page-returned": "Returned pages",
  "link-new": "New links", "link-vanished": "Vanished links", "link-returned": "Returned links",
};
const LISTED = 50;

start(async (main) => {
  const asked = Object.fromEntries(new URLSearchParams(location.search));
  put(main, make("div", { class: "blank is-loading", role: "status" }, ripple(), make("p", {}, "Comparing the runs; each is rebuilt from its results the first time …")));
  const found = await get("/api/diff", asked);
  document.title = `Run ${found.before.number} → ${found.after.number} · Sumi-Ripple`;
  const kinds = Object.keys(HEADS).filter((kind) => found.counts[kind]);
  const cell = (thing, turn) => {
    const kind = `${thing}-${turn}`;
    return found.counts[kind] ? make("a", { href: `#${kind}` }, number(found.counts[kind])) : "0";
  };
  put(main,
    make("div", { class: "head" }, make("div", {}, make("h1", {}, `From run ${found.before.number} to run ${found.after.number}`),
      make("p", {}, `${moment(found.before.started)} → ${moment(found.after.started)}`)),
    make("div", { class: "actions" }, make("a", { class: "button", href: `/map?run=${found.after.number}&against=${found.before.number}` }, "On the map"),
      csvLink("diff", { before: found.before.number, after: found.after.number }))),
    make("div", { class: "stack" },
      make("section", { class: "card" }, make("h2", {}, "In figures"), table([
        { name: "", cell: (thing) => `${thing}s` }, ...["new", "vanished", "returned"].map((turn) => ({ name: turn, isNumber: true, cell: (thing) => cell(thing, turn) })),
      ], ["domain", "page", "link"], { label: "Changes in figures" }),
      ...found.rules.map((rule) => make("p", { class: "small mono" }, ...shown(rule)))),
      found.cut_short.length ? make("div", { class: "notice is-warn" }, make("p", {}, `The request budget of ${counted(found.cut_short.length, "domain")} ran out in one of these runs: what is new or vanished there may only not have been visited.`)) : "",
      kinds.length ? "" : make("p", { class: "empty" }, "Nothing changed."),
      ...kinds.map((kind) => section(kind, found))));
});

const inWords = (value) => (value in STATES ? stateWord(value) : value ?? "");

function section(kind, found) {
  const rows = found.changes.filter((change) => change.change === kind);
  const isDomain = kind.startsWith("domain");
  const name = (text) => (isDomain ? domainLink(text) : pageLink(text, ...shown(text)));
  const columns = [{ name: isDomain ? "Domain" : "Page", cell: (row) => name(row.name) }];
  if (kind.startsWith("link")) columns.push({ name: "Links to", cell: (row) => pageLink(row.target, ...shown(row.target)) });
  if (rows.some((row) => row.was !== null)) columns.push({ name: "Was", cell: (row) => shown(inWords(row.was)) });
  if (rows.some((row) => row.is !== null)) columns.push({ name: "Is", cell: (row) => shown(inWords(row.is)) });
  return make("section", { class: "card", id: kind }, make("h2", {}, `${HEADS[kind]} (${number(found.counts[kind])})`), table(columns, rows.slice(0, LISTED), { label: HEADS[kind] }),
    found.counts[kind] > LISTED ? make("p", { class: "muted small" }, `The first ${LISTED}; `, make("a", { href: `/api/export/diff.csv?before=${found.before.number}&after=${found.after.number}` }, "the CSV"), " has them all.") : "");
}
