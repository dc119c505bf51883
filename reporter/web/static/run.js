/* One run: its figures, its summary, its exports, and the changes to other runs. */

import { get, getText } from "/static/api.js";
import { card, facts, make, put, shown, to } from "/static/dom.js";
import { exportsCard, figureLink, took } from "/static/run_parts.js";
import { blank, start } from "/static/shell.js";
import { fromMarkdown } from "/static/summary.js";
import { moment } from "/static/words.js";

const asked = Number(new URLSearchParams(location.search).get("run"));

start(async (main) => {
  const { runs } = await get("/api/runs");
  const run = runs.find((each) => each.id === asked) || (asked ? null : runs.at(-1));
  if (!run) {
    put(main, blank(`There is no run ${asked || ""}`, make("p", {}, make("a", { href: "/runs" }, "All runs"))));
    return;
  }
  document.title = `Run ${run.id} · Sumi-Ripple`;
  const completed = runs.filter((each) => each.status === "completed").map((each) => each.id);
  const before = completed.filter((each) => each < run.id).at(-1);
  const isDone = run.status === "completed";
  put(main,
    make("div", { class: "head" },
      make("div", {}, make("h1", {}, `Run ${run.id}`), make("p", {}, `${run.status} · ${moment(run.started)}`)),
      make("div", { class: "actions" },
        make("a", { class: "button", href: to("/map", { run: run.id }) }, "Map"),
        make("a", { class: "button", href: to("/pages", { run: run.id }) }, "Pages"),
        before && isDone ? make("a", { class: "button", href: to("/diff", { before, after: run.id }) }, `Changes since run ${before}`) : null)),
    make("div", { class: "grid" },
      card("Figures", facts([
        ["Took", took(run)], ["Finished", run.finished ? moment(run.finished) : null],
        ...[["Pages crawled", "pages"], ["Failed", "errors"], ["Pages known", "known"], ["Domains", "domains"], ["Links", "links"]].map(([words, name]) => [words, run[name] === null ? null : figureLink(run, name)]),
        ["Settings", make("code", {}, run.config_hash.slice(0, 8))],
        ["Changed settings", run.changed?.length ? run.changed.map((line) => make("div", { class: "mono small" }, ...shown(line))) : null],
      ])),
      exportsCard(run.id),
      await summaryCard(run)));
});

async function summaryCard(run) {
  let text;
  try {
    text = await getText(`/api/runs/${run.id}/summary`);
  } catch (problem) {
    if (problem.status !== 404) throw problem;
    return card("Summary", make("p", { class: "muted" }, run.status === "running" ? "It is written when the run ends." : "None is kept of this run."));
  }
  const box = make("section", { class: "card wide prose" }, make("div", { class: "chart-head" }, make("h2", {}, "Summary"),
    make("a", { href: `/api/runs/${run.id}/summary`, download: `run-${run.id}.md` }, "as Markdown")), ...fromMarkdown(text.replace(/^# .*\n/, "")));
  return box;
}
