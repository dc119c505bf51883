/*
 * The map: communities, domains, pages of one domain, surroundings of a page, paths to it; two runs as one.
 *
 * The address says what is shown (?level=…), so that every view can be linked to and the back button works. Layout comes
 * from the server; the canvas only draws (canvas_map.js, the same as in the file that `sumi-ripple map` writes).
 */

import { get } from "/static/api.js";
import { decide } from "/static/decide.js";
import { domainLink, dot, facts, make, outside, pageLink, put, ripple, shown, to } from "/static/dom.js";
import { pickRenderer } from "/static/renderer.js";
import { blank, comingSoon, start } from "/static/shell.js";
import { CLASSES, counted, number, STATES, stateWord, waitWord } from "/static/words.js";

const MOST_RESULTS = 12;
const MOST_NEIGHBOURS = 12;
const ASKED = ["level", "most", "domain", "url", "run", "against"]; // members of the address that the server is asked with
const FILTERS = ["class", "depth", "state", "tag"]; // members of the address that narrow what is drawn
const DOMAIN_STATES = { crawled: "some crawled", errors: "some failed", waiting: "some waiting", closed: "closed early" };
const NOTES = { quality: "on your list", discovered: "found by links", stubbed: "recorded, never visited", blacklisted: "recorded, never visited" };
const byId = (id) => document.getElementById(id);

let level = null; // the level that is shown
let map = null;
let createMap = null;
let me = null;
let asked = 0; // number of the newest question: answers to older ones are dropped

start(async (main, person) => {
  me = person;
  document.body.classList.add("is-map");
  main.replaceChildren(...frame());
  createMap = await pickRenderer();
  await fillRuns();
  listen();
  await show();
});

function frame() {
  const field = (id, name, ...options) => make("label", { class: "field" }, name, make("select", { id }, ...options));
  const bar = make("div", { class: "map-bar" },
    make("div", { class: "crumbs" }, make("h1", { id: "map-title" }, "Map"), make("p", { id: "map-counts", role: "status" }, "Loading …")),
    make("details", { class: "map-filters", open: window.innerWidth > 736 }, make("summary", {}, "Level and filters"), make("div", { role: "group", "aria-label": "Level and filters" },
      field("level", "Level", make("option", { value: "communities" }, "communities"), make("option", { value: "domains" }, "domains")),
      field("run", "Run"), field("against", "Compared with"),
      field("class", "Class", make("option", { value: "" }, "all"), ...Object.entries(CLASSES).map(([value, word]) => make("option", { value }, word))),
      field("depth", "Depth up to", make("option", { value: "" }, "any"), ...[0, 1, 2, 3, 4, 5].map((value) => make("option", { value }, String(value)))),
      field("state", "Pages"), field("tag", "Tag"))),
    make("div", { class: "finder" },
      make("input", { id: "search", type: "search", placeholder: "Search ( / )", "aria-label": "Search this map", autocomplete: "off", spellcheck: "false",
        role: "combobox", "aria-expanded": "false", "aria-controls": "results", "aria-autocomplete": "list" }),
      make("ul", { id: "results", role: "listbox", "aria-label": "Found", hidden: true })));
  const ground = make("div", { class: "map-ground", id: "ground" },
    make("canvas", { id: "map", tabindex: "0", role: "img", "aria-label": "The map. Arrow keys move it, plus and minus zoom, 0 shows all, slash searches." }),
    make("div", { class: "map-legend", id: "legend", role: "group", "aria-label": "Legend" }),
    make("div", { class: "map-zoom", role: "group", "aria-label": "Zoom" },
      make("button", { type: "button", "aria-label": "Zoom in", onclick: () => map?.zoomBy(1.35) }, "+"),
      make("button", { type: "button", "aria-label": "Zoom out", onclick: () => map?.zoomBy(1 / 1.35) }, "−"),
      make("button", { type: "button", "aria-label": "Show all", onclick: () => map?.fit() }, "⤢")),
    make("div", { class: "map-over", id: "over" }, make("div", { class: "blank is-loading" }, ripple(), make("p", {}, "Drawing the map …"))));
  const panel = make("aside", { class: "map-panel", id: "panel", "aria-label": "Selected", "aria-live": "polite", tabindex: "-1", hidden: true });
  return [bar, ground, panel];
}

async function fillRuns() {
  const runs = (await get("/api/runs")).runs.map((run) => run.id ?? run.number).reverse();
  const option = (run) => make("option", { value: run }, `run ${run}`);
  byId("run").replaceChildren(make("option", { value: "" }, "newest complete"), ...runs.map(option));
  byId("against").replaceChildren(make("option", { value: "" }, "nothing"), ...runs.map(option));
  for (const id of ["run", "against"]) byId(id).parentElement.hidden = runs.length < 2;
}

// -- what is shown, and the address ---------------------------------------------------------------------------------

const address = () => Object.fromEntries(new URLSearchParams(location.search));

export function go(query, { isReplaced = false } = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const to = `/map${kept.length ? `?${new URLSearchParams(kept)}` : ""}`;
  if (isReplaced) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  return show();
}

async function show() {
  asked += 1;
  const question = asked;
  const query = { level: "domains", ...address() };
  const wanted = Object.fromEntries(Object.entries(query).filter(([name]) => ASKED.includes(name)));
  byId("level").value = ["communities", "domains"].includes(query.level) ? query.level : "domains";
  byId("run").value = query.run || "";
  byId("against").value = query.against || "";
  byId("over").hidden = Boolean(level);
  byId("map-counts").textContent = query.against ? "Comparing the runs …" : "Loading …";
  let found;
  try {
    found = await get("/api/graph", wanted);
  } catch (problem) {
    if (question === asked) showFailure(problem, question);
    return;
  }
  if (question !== asked) return;
  draw(found);
  if (query.group !== undefined) byId("map-title").textContent = `Community of ${chiefOf(Number(query.group))}`;
  applyFilters();
  if (query.select) {
    const index = level.nodes.name.indexOf(query.select);
    if (index >= 0) map.select(index, { isRevealed: true });
  }
}

function showFailure(problem, question) {
  level = null;
  map?.end();
  map = null;
  byId("panel").hidden = true;
  byId("legend").replaceChildren();
  byId("over").hidden = false;
  if (problem.status === 503 && problem.retryAfter) {
    byId("over").replaceChildren(comingSoon(problem));
    window.setTimeout(() => question === asked && show(), problem.retryAfter * 1000);
    return;
  }
  byId("over").replaceChildren(blank(problem.slug === "no-map" ? "Nothing has been crawled yet" : "This map cannot be shown",
    make("p", { role: "alert" }, problem.message), make("p", {}, make("a", { href: "/map" }, "Back to all domains"))));
  byId("map-counts").textContent = "";
}

function draw(found) {
  level = found;
  map?.end();
  map = null;
  const panel = byId("panel");
  panel.hidden = true;
  const canvas = byId("map");
  const over = byId("over");
  over.hidden = level.counts.shown > 0;
  if (!level.counts.shown) over.replaceChildren(blank("Nothing on this map", make("p", {}, "The run has not found a page yet.")));
  map = createMap(canvas, level, { onSelect: showNode, onSelectLink: level.level === "communities" ? null : level.level === "domains" ? showLink : showPageLink });
  globalThis.sumiRippleMap = map; // for people who look around in the console, and for tests
  globalThis.sumiRippleLevel = level;
  byId("map-title").textContent = titleOf(level);
  byId("map-counts").replaceChildren(...countsOf(level));
  fillLegend();
  fillFilters();
  if (level.level === "paths") showPaths();
  if (level.level === "surroundings") map.select(level.middle);
  canvas.setAttribute("aria-label", `${titleOf(level)}: ${byId("map-counts").textContent}. Arrow keys move the map, plus and minus zoom, 0 shows all, slash searches.`);
}

function titleOf(found) {
  if (found.against) return `Run ${found.run.id} compared with run ${found.against.id}`;
  return {
    communities: "Communities", domains: "Domains", pages: `Pages of ${found.domain}`,
    surroundings: "Around one page", paths: "Paths to one page",
  }[found.level];
}

function countsOf(found) {
  const { counts } = found;
  const run = ` · run ${found.run.id}, ${found.run.status}`;
  if (found.against) {
    return [`${number(counts.new)} new and ${number(counts.vanished)} vanished domains, ${number(counts.links_new)} new and ${number(counts.links_vanished)} vanished links between them`];
  }
  if (found.level === "communities") return [`${counted(counts.shown, "community", "communities")} of ${counted(counts.domains, "domain")}${run}`];
  if (found.level === "surroundings") return [`${counted(counts.links_here, "page")} link here, ${counted(counts.links_from_here, "link")} lead on · showing ${number(counts.shown)}`];
  if (found.level === "paths") return [counts.paths ? `Depth from ${counted(counts.paths, "quality domain")}: a shortest path from each` : "No followed path leads here"];
  const what = found.level === "pages" ? "page" : "domain";
  const words = [`Showing ${number(counts.shown)} of ${counted(counts.known, what)}, ${number(counts.links)}${counts.links_known > counts.links ? ` of ${number(counts.links_known)}` : ""} links${run}`];
  if (counts.known > counts.shown && found.level === "domains" && counts.shown < 5000) {
    words.push(" · ", make("button", { class: "plain", type: "button", onclick: () => go({ ...address(), most: 5000 }) }, "show up to 5,000"));
  }
  return words;
}

const chiefOf = (group) => {
  const place = level.nodes.group?.indexOf(group) ?? -1;
  return place < 0 ? "no domain" : level.nodes.shown[place];
};

// -- legend and filters ---------------------------------------------------------------------------------------------

function fillLegend() {
  const legend = byId("legend");
  const order = ["quality", "discovered", "stubbed", "blacklisted"];
  const sizes = level.classes.map((_, index) => level.nodes.class.filter((each) => each === index).length);
  const buttons = order.filter((name) => sizes[level.classes.indexOf(name)]).map((name) => {
    const index = level.classes.indexOf(name);
    const button = make("button", { type: "button", "aria-pressed": "true", title: NOTES[name] }, dot(name), `${CLASSES[name]} ${number(sizes[index])}`);
    button.addEventListener("click", () => {
      const isOn = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(isOn));
      map.showClass(index, isOn);
    });
    return button;
  });
  const notes = { domains: "size: quality domains that link there", communities: "size: domains in it", pages: "size: links inside the domain; hollow: not visited; red ring: failed", surroundings: "hollow: not visited; red ring: failed", paths: "hollow: not visited; red ring: failed" };
  legend.replaceChildren(...buttons);
  if (level.against) {
    legend.append(make("span", {}, make("span", { class: "swatch" }), `new ${number(level.counts.new)}`),
      make("span", {}, make("span", { class: "swatch is-vanished" }), `vanished ${number(level.counts.vanished)}`));
  } else if (notes[level.level]) legend.append(make("span", { class: "note muted" }, notes[level.level]));
}

/** The filters that this level has, as the address sets them. */
function fillFilters() {
  const isDomains = level.level === "domains";
  const tags = [...new Set((level.nodes.tags || []).flat())].sort();
  const states = isDomains ? Object.entries(DOMAIN_STATES) : [...new Set(level.nodes.state || [])].sort().map((state) => [state, stateWord(state)]);
  const fill = (id, entries) => byId(id).replaceChildren(make("option", { value: "" }, "any"), ...entries.map(([value, words]) => make("option", { value }, ...shown(words, 40))));
  fill("state", states);
  fill("tag", tags.map((tag) => [tag, tag]));
  for (const id of ["class", "depth", "state"]) byId(id).parentElement.hidden = level.level === "communities";
  byId("tag").parentElement.hidden = !tags.length;
  for (const id of FILTERS) {
    const wanted = address()[id] || "";
    byId(id).value = [...byId(id).options].some((option) => option.value === wanted) ? wanted : "";
  }
}

/** Another filter: the address remembers it, the drawing stays. */
function filter() {
  const chosen = Object.fromEntries(FILTERS.map((id) => [id, byId(id).parentElement.hidden ? "" : byId(id).value]));
  history.replaceState(null, "", to("/map", { ...address(), ...chosen }));
  applyFilters();
}

function applyFilters() {
  if (!map) return;
  const { nodes } = level;
  const [klass, depth, state, tag] = FILTERS.map((id) => (byId(id).parentElement.hidden ? "" : byId(id).value));
  const { group } = address();
  const tests = [];
  if (klass) tests.push((index) => level.classes[nodes.class[index]] === klass);
  if (depth) tests.push((index) => nodes.depth[index] !== null && nodes.depth[index] <= Number(depth));
  if (state) tests.push((index) => (level.level !== "domains" ? nodes.state[index] === state : state === "closed" ? Boolean(nodes.closed[index]) : nodes[state][index] > 0));
  if (tag) tests.push((index) => nodes.tags[index].includes(tag));
  if (group !== undefined && level.level === "domains") tests.push((index) => nodes.group[index] === Number(group));
  map.showOnly(tests.length ? (index) => tests.every((test) => test(index)) : null);
  const left = tests.length ? nodes.name.filter((_, index) => tests.every((test) => test(index))).length : null;
  if (left !== null) byId("map-counts").replaceChildren(...countsOf(level), ` · ${number(left)} pass the filters`);
  else byId("map-counts").replaceChildren(...countsOf(level));
}

// -- the panel ------------------------------------------------------------------------------------------------------

function openPanel(title, ...children) {
  const panel = byId("panel");
  const close = make("button", { type: "button", class: "plain", "aria-label": "Close", onclick: () => {
    map.select(null);
    panel.hidden = true;
    byId("map").focus();
  } }, "×");
  put(panel, make("div", { class: "panel-head" }, make("h2", { id: "panel-title", tabindex: "-1" }, ...[title].flat()), close), ...children);
  panel.hidden = false;
  panel.scrollTop = 0;
}

function showNode(index) {
  if (index === null) {
    byId("panel").hidden = true;
    return;
  }
  if (level.level === "communities") showCommunity(index);
  else if (level.level === "domains") showDomain(index);
  else showPage(index);
}

function showCommunity(index) {
  const { nodes } = level;
  openPanel(shown(nodes.shown[index]),
    make("p", { class: "muted" }, `${counted(nodes.domains[index], "domain")}, ${number(nodes.quality[index])} of them quality, ${counted(nodes.known[index], "page")} known`),
    make("div", { class: "actions" }, make("button", { class: "primary", type: "button", onclick: () => go({ level: "domains", run: address().run, group: nodes.group[index] }) }, "Show its domains")),
    make("h3", {}, "Its most linked domains"),
    make("ul", { class: "plain" }, nodes.named[index].map(([name, words]) => make("li", {}, domainLink(name, ...shown(words))))));
}

function showDomain(index) {
  const { nodes } = level;
  const name = nodes.name[index];
  const klass = level.classes[nodes.class[index]];
  const near = map.neighboursOf(index);
  const why = make("div", { class: "panel-why" });
  const change = level.against ? ["", "new in this run", "vanished since that run"][nodes.change[index]] : "";
  const linked = (value, query) => (value ? make("a", { href: to("/pages", { domain: name, run: address().run, ...query }) }, number(value)) : "0");
  openPanel(shown(nodes.shown[index]),
    make("p", { class: "muted" }, dot(klass), `${CLASSES[klass]}, ${NOTES[klass]}`, change ? ` · ${change}` : ""),
    nodes.tags?.[index].length ? make("p", {}, nodes.tags[index].map((tag) => [make("span", { class: "tag" }, ...shown(tag, 40)), " "])) : null,
    make("div", { class: "actions" },
      make("a", { class: "button", href: `/domain?${new URLSearchParams({ domain: name })}` }, "Explain"),
      nodes.known[index] ? make("button", { type: "button", onclick: () => go({ level: "pages", domain: name, run: address().run }) }, "Its pages") : null,
      ...decisions(name, klass)),
    facts([
      ["Quality domains that link here", listed(nodes.quality_domains[index], "incoming")],
      ["Links from them", listed(nodes.links_from_quality[index], "incoming")],
      ["Links in / out", [listed(nodes.links_in[index], "incoming"), " / ", listed(nodes.links_out[index], "outgoing")]],
      ["Pages crawled", linked(nodes.crawled[index], { state: "processed" })],
      ["Pages known", linked(nodes.known[index], {})],
      ["Pages failed", nodes.errors[index] ? linked(nodes.errors[index], { state: "errors" }) : null],
      ["Pages waiting", nodes.waiting[index] ? linked(nodes.waiting[index], { state: "queued" }) : null],
      ["Depth", nodes.depth[index] === null ? null : number(nodes.depth[index])],
      ["Closed in this run", nodes.closed[index] ? waitWord(nodes.closed[index]) : null],
    ]),
    why,
    ...neighbourList("Linked from", near.from, "incoming", nodes.domains_in[index], (other) => [other, index]),
    ...neighbourList("Links to", near.to, "outgoing", nodes.domains_out[index], (other) => [index, other]),
    nodes.pages?.[index].length ? make("h3", {}, "Some of its pages") : null,
    make("ul", { class: "plain rows" }, (nodes.pages?.[index] || []).map(([url, words, title, state]) => make("li", {},
      pageLink(url, ...shown(title || words)), make("span", { class: "muted small" }, " ", ...shown(title ? words : ""), state === "processed" ? "" : ` · ${stateWord(state)}`)))));
  explainDomain(name, why);
}

/** What `explain` says of a domain, asked for when its panel opens. */
async function explainDomain(name, place) {
  const domain = await explained({ domain: name }, place);
  if (!domain) return;
  const noteOf = () => decide("note", domain.rule, { note: domain.note, tags: domain.tags, onDone: show });
  put(place, facts([
    ["Decided by", domain.rule ? shown(`${domain.rule} in [[${domain.rule_list}]]${domain.rule_line ? `, line ${domain.rule_line}` : ""}`) : "no rule: found by links"],
    ["Not crawled", domain.why.length ? domain.why.map((line) => make("div", {}, ...shown(line))) : null],
    ["robots.txt", domain.robots ? shown(`${domain.robots}${domain.crawl_delay ? `, Crawl-delay ${domain.crawl_delay} s` : ""}`) : null],
    ["Note", domain.note ? shown(domain.note) : null],
  ]), me.role === "admin" && domain.rule ? make("button", { type: "button", class: "plain small", onclick: noteOf }, "Note and tags") : "");
}

/** What `explain` says of a page. */
async function explainPage(url, place) {
  const page = await explained({ url }, place);
  if (!page) return;
  put(place, facts([
    ["Why", page.error ? shown(page.error) : null],
    ["Found by", page.origin],
    ["Decided by", page.rule ? shown(`${page.rule} in [[${page.rule_list}]]`) : null],
    ["Linked from", page.linked_from_total ? make("a", { href: to("/referrers", { url: page.key, run: address().run }) }, counted(page.linked_from_total, "page")) : "no page"],
    ["Depth by origin", page.depths.slice(0, MOST_NEIGHBOURS).map((depth) => make("div", {}, `${number(depth.depth)} from `, ...shown(depth.origin)))],
    ["To have it crawled", page.state !== "processed" && page.to_be_crawled?.length ? page.to_be_crawled.map((line) => make("div", {}, ...shown(line, 600))) : null],
  ]));
}

/** The answer, or undefined if it failed, or if the panel shows something else by now. */
async function explained(query, place) {
  put(place, make("p", { class: "muted small", role: "status" }, "Explaining …"));
  try {
    const found = await get("/api/explain", { ...query, run: address().run });
    return place.isConnected ? found : undefined;
  } catch (problem) {
    put(place, make("p", { class: "muted small", role: "alert" }, problem.message));
    return undefined;
  }
}

function decisions(name, klass) {
  if (me.role !== "admin") return [];
  const words = { accept: "Accept", reject: "Reject", stub: "Stub" };
  const fitting = { discovered: ["accept", "reject", "stub"], stubbed: ["accept", "reject"], blacklisted: ["accept", "stub"], quality: [] }[klass];
  return fitting.map((word) => make("button", { type: "button", onclick: () => decide(word, name) }, words[word]));
}

/** A number that leads to the list below in which its links are. */
function listed(value, kind) {
  if (!value) return "0";
  return make("button", { class: "plain", type: "button", "aria-label": `${number(value)}: to the list`, onclick: () => {
    const heading = byId(`neighbours-${kind}`);
    heading?.scrollIntoView({ block: "start" });
    heading?.focus();
  } }, number(value));
}

function neighbourList(title, others, kind, total, ends) {
  if (!total) return [];
  const { nodes } = level;
  const ranked = [...others.entries()].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  const list = make("ul", { class: "plain" });
  const add = (entries) => list.append(...entries.map(([other, links]) => make("li", { class: "row" },
    make("button", { class: "neighbour", type: "button", onclick: () => {
      map.select(other, { isRevealed: true });
      byId("panel-title").focus();
    } }, dot(level.classes[nodes.class[other]]), make("span", { class: "name" }, ...shown(nodes.shown[other]))),
    make("button", { class: "plain small", type: "button", "aria-label": `Page links: ${nodes.shown[other]}`, onclick: () => showLink(...ends(other), links) }, counted(links, "link")))));
  add(ranked.slice(0, MOST_NEIGHBOURS));
  const parts = [make("h3", { class: kind, id: `neighbours-${kind}`, tabindex: "-1" }, `${title} ${counted(total, "domain")}`), list];
  if (ranked.length > MOST_NEIGHBOURS) {
    const more = make("button", { class: "plain small", type: "button" }, `Show ${number(ranked.length - MOST_NEIGHBOURS)} more`);
    more.addEventListener("click", () => {
      add(ranked.slice(MOST_NEIGHBOURS));
      more.remove();
    });
    parts.push(more);
  }
  if (total > ranked.length) parts.push(make("p", { class: "muted small" }, `${counted(total - ranked.length, "domain")} not on this map`));
  return parts;
}

async function showLink(from, to, links) {
  const { nodes } = level;
  const title = [...shown(nodes.shown[from]), " → ", ...shown(nodes.shown[to])];
  openPanel(title, make("p", { class: "muted", role: "status" }, "Looking up the page links …"));
  try {
    const found = await get("/api/graph/links", { from: nodes.name[from], to: nodes.name[to], run: address().run });
    openPanel(title,
      make("p", { class: "muted" }, found.rows.length < found.links ? `Showing ${number(found.rows.length)} of ${counted(found.links, "page link")}` : counted(links, "page link")),
      make("ul", { class: "plain rows" }, found.rows.map((row) => make("li", {},
        pageLink(row.from, ...shown(row.from_shown)), make("span", { class: "muted" }, " → "), pageLink(row.to, ...shown(row.to_shown)),
        row.text ? make("span", { class: "muted small" }, " “", ...shown(row.text), "”") : null))));
  } catch (problem) {
    openPanel(title, make("p", { role: "alert" }, problem.message));
  }
}

/** A line between two pages is one link. */
function showPageLink(from, target) {
  const { nodes } = level;
  const end = (index) => make("p", {}, pageLink(nodes.name[index], ...shown(nodes.title[index] || nodes.shown[index])), make("span", { class: "muted small url" }, " ", ...shown(nodes.shown[index])));
  openPanel(["A link"], end(from), make("p", { class: "muted" }, "links to"), end(target));
}

function showPage(index) {
  const { nodes } = level;
  const url = nodes.name[index];
  const why = make("div", { class: "panel-why" });
  openPanel(shown(nodes.title[index] || nodes.shown[index]),
    make("p", { class: "url small" }, outside(url, ...shown(nodes.shown[index]))),
    facts([
      ["State", STATES[nodes.state[index]] || nodes.state[index]],
      ["Depth", nodes.depth[index] === null ? "no followed path" : number(nodes.depth[index])],
      ["Class of its domain", CLASSES[level.classes[nodes.class[index]]]],
    ]),
    make("div", { class: "actions" },
      make("a", { class: "button", href: `/page?${new URLSearchParams({ url })}` }, "Explain"),
      make("button", { type: "button", onclick: () => go({ level: "surroundings", url, run: address().run }) }, "What is around it"),
      make("button", { type: "button", onclick: () => go({ level: "paths", url, run: address().run }) }, "Path from a quality domain")),
    why);
  explainPage(url, why);
}

function showPaths() {
  const { nodes } = level;
  const rows = level.paths.map((path) => make("li", {},
    make("button", { class: "neighbour", type: "button", onclick: () => map.showPath(path.steps.map(([place]) => place)) },
      make("span", { class: "name" }, ...shown(path.origin)), make("span", { class: "count" }, `depth ${path.depth}`)),
    make("ol", { class: "small" }, path.steps.map(([place, depth, via]) => make("li", {},
      pageLink(nodes.name[place], ...shown(nodes.title[place] || nodes.shown[place])), make("span", { class: "muted" }, via === "redirect" ? " by a redirect" : via === "start" ? " start" : ` depth ${depth}`))))));
  openPanel(["Paths to ", ...shown(nodes.shown[level.middle])],
    level.counts.paths > level.counts.paths_shown ? make("p", { class: "muted" }, `The nearest ${number(level.counts.paths_shown)} of ${number(level.counts.paths)}`) : null,
    level.paths.length ? make("ul", { class: "plain rows" }, rows) : make("p", {}, "No followed path leads here: links that are not followed, or a sitemap, named it."));
  const longest = level.paths.find((path) => path.steps.length > 1);
  if (longest) map.showPath(longest.steps.map(([place]) => place));
}

// -- search ---------------------------------------------------------------------------------------------------------

let hits = [];
let active = -1;

function find() {
  if (!map) return;
  const text = byId("search").value.trim().toLowerCase();
  const { nodes } = level;
  const all = text ? nodes.name.map((_, index) => index).filter((index) =>
    `${nodes.shown[index]}\n${nodes.name[index]}\n${nodes.title?.[index] || ""}`.toLowerCase().includes(text)) : [];
  map.showMatches(text ? new Set(all) : null);
  hits = all.slice(0, MOST_RESULTS);
  active = -1;
  const results = byId("results");
  results.replaceChildren(...hits.map((index, place) => make("li", { id: `result-${place}`, role: "option", "aria-selected": "false", onmousedown: (event) => {
    event.preventDefault();
    choose(index);
  } }, dot(level.classes[nodes.class[index]]), ...shown(nodes.shown[index]))));
  if (text && !all.length) results.append(make("li", { class: "nothing", role: "option", "aria-disabled": "true", "aria-selected": "false" }, "Nothing on this map has that in its name."));
  if (text) {
    const isDomains = ["domains", "communities"].includes(level.level);
    results.append(make("li", { id: `result-${hits.length}`, role: "option", "aria-selected": "false", class: "nothing", onmousedown: () => location.assign(elsewhere()) }, isDomains ? "Look among all domains" : "Look among all pages"));
  }
  if (all.length > hits.length) results.append(make("li", { class: "nothing", role: "option", "aria-disabled": "true", "aria-selected": "false" }, `and ${number(all.length - hits.length)} more`));
  setOpen(Boolean(text));
}

function setOpen(isOpen) {
  byId("results").hidden = !isOpen;
  byId("search").setAttribute("aria-expanded", String(isOpen));
  mark(-1);
}

function mark(place) {
  active = place;
  for (let each = 0; each <= hits.length; each += 1) byId(`result-${each}`)?.setAttribute("aria-selected", String(each === place));
  if (place >= 0) byId("search").setAttribute("aria-activedescendant", `result-${place}`);
  else byId("search").removeAttribute("aria-activedescendant");
}

/** The list in which the words of the search are looked for beyond this map. */
function elsewhere() {
  const q = byId("search").value.trim();
  return to(["domains", "communities"].includes(level.level) ? "/domains" : "/pages", { q, run: address().run });
}

function choose(index) {
  setOpen(false);
  map.showMatches(null);
  map.select(index, { isRevealed: true });
}

function listen() {
  const search = byId("search");
  search.addEventListener("input", find);
  search.addEventListener("focus", find);
  search.addEventListener("blur", () => setOpen(false));
  search.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && search.value) mark((active + 1) % (hits.length + 1));
    else if (event.key === "ArrowUp" && search.value) mark((Math.max(active, 0) + hits.length) % (hits.length + 1));
    else if (event.key === "Enter" && search.value && (active === hits.length || !hits.length)) location.assign(elsewhere());
    else if (event.key === "Enter" && hits.length) choose(hits[Math.max(active, 0)]);
    else if (event.key === "Escape") {
      search.value = "";
      find();
      byId("map").focus();
    } else return;
    event.preventDefault();
  });
  byId("level").addEventListener("change", () => go({ level: byId("level").value, run: address().run }));
  byId("run").addEventListener("change", () => go({ ...address(), run: byId("run").value }));
  byId("against").addEventListener("change", () => go({ level: "domains", run: byId("run").value, against: byId("against").value }));
  for (const id of FILTERS) byId(id).addEventListener("change", filter);
  window.addEventListener("popstate", show);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !["INPUT", "TEXTAREA", "SELECT"].includes(event.target.tagName)) {
      search.focus();
      event.preventDefault();
    } else if (event.key === "Escape" && !["INPUT", "SELECT", "CANVAS"].includes(event.target.tagName) && !document.querySelector("dialog[open]")) {
      map?.select(null);
      byId("panel").hidden = true;
      byId("map").focus();
    }
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => map?.restyle());
}
