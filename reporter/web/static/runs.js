/* Runs: history with figures, what changed in between, summaries and exports. */

import { get } from "/static/api.js";
import { make, put, shown, table } from "/static/dom.js";
import { blank, start } from "/static/shell.js";
import { duration, moment, number } from "/static/words.js";

start(async (main) => {
  const found = await get("/api/runs");
  const runs = [...found.runs].reverse();
  if (!runs.length) {
    put(main, blank("No run yet", make("p", {}, "Start one with ", make("code", {}, "sumi-ripple crawl my.toml"), ".")));
    return;
  }
  const completed = runs.filter((run) => run.status === "completed").map((run) => run.id ?? run.number);
  const before = (id) => completed.find((each) => each < id);
  const tone = { completed: "is-good", running: "", interrupted: "is-warn" };
  put(main,
    make("div", { class: "head" }, make("div", {}, make("h1", {}, "Runs"), make("p", {}, "Every run of this crawl, newest first.")),
      completed.length > 1 ? make("div", { class: "actions" }, make("a", { class: "button", href: `/diff?before=${completed[1]}&after=${completed[0]}` }, "What changed last")) : null),
    make("div", { class: "stack" },
      make("section", { class: "card" }, table([
        { name: "Run", cell: (run) => [make("strong", {}, `#${run.id ?? run.number}`), " ", make("span", { class: `tag ${tone[run.status] ?? ""}` }, run.status)] },
        { name: "Started", cell: (run) => moment(run.started_at ?? run.started) },
        { name: "Took", cell: (run) => took(run) },
        { name: "Crawled", isNumber: true, cell: (run) => counts(run, "pages", "/pages?state=processed", runs) },
        { name: "Failed", isNumber: true, cell: (run) => counts(run, "errors", "/pages?state=errors", runs) },
        { name: "Known", isNumber: true, cell: (run) => counts(run, "known", "/pages", runs) },
        { name: "Domains", isNumber: true, cell: (run) => counts(run, "domains", "/domains", runs) },
        { name: "Links", isNumber: true, cell: (run) => counts(run, "links", "/map", runs) },
        { name: "Look at", cell: (run) => {
          const id = run.id ?? run.number;
          const links = [make("a", { href: `/map?run=${id}` }, "map"), make("a", { href: `/api/runs/${id}/summary` }, "summary")];
          if (before(id) && run.status === "completed") links.push(make("a", { href: `/diff?before=${before(id)}&after=${id}` }, "changes"), make("a", { href: `/map?run=${id}&against=${before(id)}` }, "on the map"));
          return links.flatMap((link, place) => (place ? [" · ", link] : [link]));
        } },
      ], runs, { label: "Runs" })),
      settings(runs), exportsCard()));
});

function took(run) {
  const seconds = run.seconds ?? (run.finished_at ? (new Date(run.finished_at) - new Date(run.started_at)) / 1000 : null);
  return seconds === null || Number.isNaN(seconds) ? "–" : duration(seconds);
}

/** A figure of a run; the newest run's figure links to what it counts, that of an older one to its map. */
function counts(run, name, href, runs) {
  const value = run[name] ?? run.figures?.[name];
  if (value === null || value === undefined) return "–";
  return make("a", { href: run === runs[0] ? href : `/map?run=${run.id ?? run.number}` }, number(value));
}

function settings(runs) {
  const changed = runs.filter((run) => run.changed?.length);
  if (!changed.length) return "";
  return make("section", { class: "card" }, make("h2", {}, "Settings that changed"), make("ul", { class: "plain rows" }, changed.map((run) =>
    make("li", {}, make("strong", {}, `Run ${run.id ?? run.number} `), ...run.changed.map((line) => make("span", { class: "sub mono" }, ...shown(line)))))));
}

function exportsCard() {
  const files = [["pages.csv", "pages"], ["domains.csv", "domains"], ["map.nodes.csv", "domains as nodes of a graph"], ["map.edges.csv", "links between domains"], ["candidates.csv", "candidates"], ["dead-links.csv", "links that lead nowhere"], ["unreachable-links.csv", "links to pages that did not answer"], ["moved-links.csv", "links that redirect for good"], ["map.gexf", "domains and links for Gephi"], ["map.graphml", "the same as GraphML"]];
  return make("section", { class: "card" }, make("h2", {}, "Exports of the newest complete run"),
    make("ul", { class: "plain rows" }, files.map(([name, words]) => make("li", {}, make("a", { href: `/api/export/${name}`, download: name }, name), make("span", { class: "muted" }, ` ${words}`)))));
}
