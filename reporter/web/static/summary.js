/*
 * The Markdown that `sumi-ripple` writes as a summary, as elements: headings, tables, lists, paragraphs; bold, code and
 * line breaks in them. Only text nodes come out of it, so what a site wrote into a title stays text.
 */

import { isWebAddress, make, pageLink, shown } from "/static/dom.js";

const INLINE = /(`+)(.+?)\1|\*\*(.+?)\*\*|<br>|\\([!-/:-@[-`{-~])/g;

/** The elements of a Markdown text. */
export function fromMarkdown(text) {
  const made = [];
  let under = ""; // the heading that was last
  let tables = 0;
  const lines = text.split("\n");
  for (let at = 0; at < lines.length;) {
    const line = lines[at];
    const from = at;
    const all = (test) => {
      while (at < lines.length && test(lines[at])) at += 1;
      return lines.slice(from, at);
    };
    const head = /^(#{1,4}) (.*)/.exec(line);
    if (head) {
      under = head[2];
      made.push(make(`h${Math.min(head[1].length + 1, 4)}`, {}, ...inline(head[2])));
      at += 1;
    } else if (line.startsWith("|")) {
      tables += 1;
      made.push(tableOf(all((each) => each.startsWith("|")), `Table ${tables}: ${under}`)); // of each name one, so that it can be found
    } else if (line.startsWith("- ")) made.push(make("ul", { class: "plain" }, all((each) => each.startsWith("- ")).map((each) => make("li", {}, ...inline(each.slice(2))))));
    else if (!line.trim() || line === "---") at += 1;
    else made.push(make("p", {}, all((each) => each.trim() && !/^(#|\||- |---$)/.test(each)).flatMap((each) => [...inline(each.trim()), each.endsWith("  ") ? make("br") : " "])));
  }
  return made;
}

function tableOf(lines, label) {
  const cells = (line) => line.replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim());
  const [head, ways, ...rows] = lines.map(cells);
  const tone = (place) => (ways?.[place]?.endsWith(":") || rows.every((row) => /^[\d,]*$/.test(row[place] || "")) ? "num" : null);
  return make("div", { class: "table", tabindex: "0", role: "region", "aria-label": label },
    make("table", { class: "fitting" },
      make("thead", {}, make("tr", {}, head.map((cell, place) => make(cell ? "th" : "td", { scope: cell ? "col" : null, class: tone(place) }, ...inline(cell))))),
      make("tbody", {}, rows.map((row) => make("tr", {}, row.map((cell, place) => make("td", { class: tone(place) }, ...inline(cell))))))));
}

function inline(text) {
  const nodes = [];
  let from = 0;
  for (const match of text.matchAll(INLINE)) {
    nodes.push(...shown(text.slice(from, match.index), 2000));
    from = match.index + match[0].length;
    if (match[2] !== undefined) nodes.push(isWebAddress(match[2]) ? pageLink(match[2], ...shown(match[2])) : make("code", {}, ...shown(match[2])));
    else if (match[3] !== undefined) nodes.push(make("strong", {}, ...inline(match[3])));
    else if (match[4] !== undefined) nodes.push(match[4]);
    else nodes.push(make("br"));
  }
  nodes.push(...shown(text.slice(from), 2000));
  return nodes;
}
