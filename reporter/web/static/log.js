/* What was changed through the face, by whom; the newest first. */

import { get } from "/static/api.js";
import { make, moreButton, put, shown, table } from "/static/dom.js";
import { start } from "/static/shell.js";
import { moment } from "/static/words.js";

start(async (main) => {
  const list = make("div", { class: "stack", "aria-live": "polite" });
  put(main, make("div", { class: "head" }, make("div", {}, make("h1", {}, "Log"), make("p", {}, "What was changed through this face and its API, by whom. Refused calls are here too."))), list);
  await fill(list);
});

async function fill(list, before) {
  const found = await get("/api/log", { before });
  if (!found.entries.length && before === undefined) {
    list.append(make("p", { class: "empty" }, "Nothing has been changed yet."));
    return;
  }
  list.append(make("section", { class: "card" }, table([
    { name: "When", cell: (row) => moment(row.at) },
    { name: "Who", cell: (row) => [...shown(row.who), make("span", { class: "sub" }, row.role)] },
    { name: "What", cell: (row) => [make("code", {}, row.action), make("span", { class: "sub" }, ...shown(detail(row.detail), 300))] },
    { name: "Outcome", cell: (row) => make("span", { class: `tag ${row.status < 400 ? "is-good" : "is-bad"}` }, row.status < 400 ? "done" : `refused (${row.status})`) },
  ], found.entries, { label: "Changes" })));
  if (found.next) list.append(moreButton(() => fill(list, found.next)));
}

const detail = (members) => Object.entries(members || {}).filter(([, value]) => value !== "" && value !== null && !(Array.isArray(value) && !value.length)).map(([name, value]) => `${name}: ${value}`).join(", ");
