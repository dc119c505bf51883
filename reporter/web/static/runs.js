/* Runs: history with figures, what changed in between, summaries and exports. */

import { get } from "/static/api.js";
import { csvLink, make, put, shown, table, to } from "/static/dom.js";
import { exportsCard, figureLink, took } from "/static/run_parts.js";
import { blank, start } from "/static/shell.js";
import { moment } from "/static/words.js";

start(async (main) => {
  const runs = [...(await get("/api/runs")).runs].reverse();
  if (!runs.length) {
    put(main, blank("No run yet", make("p", {}, "Start one with ", make("code", {}, "sumi-ripple crawl my.toml"), ".")));
    return;
  }
  const completed = runs.filter((run) => run.status === "completed").map((run) => run.id);
  const before = (id) => completed.find((each) => each < id);
  const tone = { completed: "is-good", running: "", interrupted: "is-warn" };
  put(main,
    make("div", { class: "head" }, make("div", {}, make("h1", {}, "Runs"), make("p", {}, "Every run of this crawl, newest first.")),
      make("div", { class: "actions" }, csvLink("runs"))),
    make("div", { class: "stack" },
      make("section", { class: "card" }, table([
        { name: "Run", cell: (run) => [make("a", { href: to("/run", { run: run.id }) }, make("strong", {}, `#${run.id}`)), " ", make("span", { class: `tag ${tone[run.status] ?? ""}` }, run.status)] },
        { name: "Started", cell: (run) => moment(run.started) },
        { name: "Took", cell: took },
        { name: "Crawled", isNumber: true, cell: (run) => figureLink(run, "pages") },
        { name: "Failed", isNumber: true, cell: (run) => figureLink(run, "errors") },
        { name: "Known", isNumber: true, cell: (run) => figureLink(run, "known") },
        { name: "Domains", isNumber: true, cell: (run) => figureLink(run, "domains") },
        { name: "Links", isNumber: true, cell: (run) => figureLink(run, "links") },
        { name: "Look at", cell: (run) => {
          const links = [make("a", { href: to("/map", { run: run.id }) }, "map"), make("a", { href: to("/run", { run: run.id }) }, "summary")];
          if (before(run.id) && run.status === "completed") links.push(make("a", { href: to("/diff", { before: before(run.id), after: run.id }) }, "changes"), make("a", { href: to("/map", { run: run.id, against: before(run.id) }) }, "on the map"));
          return links.flatMap((link, place) => (place ? [" · ", link] : [link]));
        } },
      ], runs, { label: "Runs" })),
      completed.length > 1 ? comparison(completed) : "", settings(runs), exportsCard()));
});

/** Any two complete runs, in words or on the map. */
function comparison(completed) {
  const select = (name, words, chosen) => make("label", { class: "field" }, words, make("select", { name }, completed.map((id) => make("option", { value: id, selected: id === chosen }, `run ${id}`))));
  const problem = make("p", { role: "alert", class: "small", hidden: true }, "Choose two different runs.");
  const form = make("form", { class: "filters", onsubmit: (event) => {
    event.preventDefault();
    const [older, newer] = [Number(form.elements.before.value), Number(form.elements.after.value)].sort((a, b) => a - b);
    problem.hidden = older !== newer;
    if (older !== newer) location.assign(event.submitter.value === "map" ? to("/map", { run: newer, against: older }) : to("/diff", { before: older, after: newer }));
  } },
  select("before", "From", completed[1]), select("after", "To", completed[0]),
  make("button", { class: "primary", type: "submit", value: "words" }, "What changed"), make("button", { type: "submit", value: "map" }, "On the map"), problem);
  return make("section", { class: "card" }, make("h2", {}, "Compare two runs"), form);
}

function settings(runs) {
  const changed = runs.filter((run) => run.changed?.length);
  if (!changed.length) return "";
  return make("section", { class: "card" }, make("h2", {}, "Settings that changed"), make("ul", { class: "plain rows" }, changed.map((run) =>
    make("li", {}, make("strong", {}, `Run ${run.id} `), ...run.changed.map((line) => make("span", { class: "sub mono" }, ...shown(line)))))));
}
