/* What the list of runs and the page of one run share: figures with links to what they count, and the exports. */

import { make, to } from "/static/dom.js";
import { duration, number } from "/static/words.js";

const FIGURES = { pages: ["/pages", "processed"], errors: ["/pages", "errors"], known: ["/pages", ""], domains: ["/domains", ""], links: ["/map", ""] };
const EXPORTS = [
  ["pages.csv", "pages"], ["domains.csv", "domains"], ["candidates.csv", "candidates"], ["map.nodes.csv", "domains as nodes of a graph"], ["map.edges.csv", "links between domains"],
  ["links-to-mend.csv", "links of quality domains to mend, with every page that has them"], ["dead-links.csv", "links that lead nowhere"], ["unreachable-links.csv", "links to pages that did not answer"],
  ["moved-links.csv", "links that redirect for good"], ["map.gexf", "domains and links for Gephi"], ["map.graphml", "the same as GraphML"],
];

export function took(run) {
  return run.seconds === null ? "–" : duration(run.seconds);
}

/** A figure of a run, with a link to what it counts in that run. */
export function figureLink(run, name) {
  if (run[name] === null) return "–";
  const [path, state] = FIGURES[name];
  return make("a", { href: to(path, { state, run: run.id }) }, number(run[name]));
}

export function exportsCard(run) {
  return make("section", { class: "card" }, make("h2", {}, run ? "Exports" : "Exports of the newest complete run"),
    make("ul", { class: "plain rows" }, EXPORTS.map(([name, words]) => make("li", {}, make("a", { href: to(`/api/export/${name}`, { run }), download: name }, name), make("span", { class: "muted" }, ` ${words}`)))));
}
