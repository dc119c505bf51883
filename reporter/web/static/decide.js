/* A decision about a domain: what it would do (by replay), then yes or no. */

import { post } from "/static/api.js";
import { make, put, shown } from "/static/dom.js";
import { tell } from "/static/shell.js";

const SETTLED = 400; // milliseconds without another key before a note is previewed again
const WORDS = {
  accept: { title: "Accept", effect: "Put it into [[quality]]: crawled in full, depth is counted from it." },
  reject: { title: "Reject", effect: "Put it into [[blacklist]]: never visited, links to it are counted." },
  stub: { title: "Stub", effect: "Put it into [[stub]]: never visited, its linked pages are recorded." },
  note: { title: "Note and tags of", yes: "Write them", effect: "They stand at its entry in the config, and go into lists, filters and exports." },
};

const DONE = { accept: "Accepted ", reject: "Rejected ", stub: "Stubbed ", note: "Noted at " };

/** Open the dialog. Resolves to true if the decision was made. */
export function decide(word, domain, { note: noted = "", tags: tagged = [], onDone = () => {} } = {}) {
  const effect = make("div", { "aria-live": "polite" }, make("p", { class: "muted" }, "Working out by a replay what the map would become …"));
  const note = make("input", { name: "note", maxlength: "300", autocomplete: "off", value: noted || "" });
  const tags = make("input", { name: "tags", maxlength: "200", autocomplete: "off", placeholder: "separated by commas", value: tagged.join(", ") });
  const yes = make("button", { class: "primary", type: "submit" }, WORDS[word].yes || `${WORDS[word].title} it`);
  const problem = make("div", { class: "notice is-bad", role: "alert", hidden: true });
  const form = make("form", { method: "dialog" },
    make("h2", {}, `${WORDS[word].title} `, ...shown(domain)), make("p", {}, WORDS[word].effect), effect,
    make("label", { class: "field" }, "Note (kept with the entry)", note), make("label", { class: "field" }, "Tags", tags), problem,
    make("div", { class: "actions" }, make("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), yes));
  const dialog = make("dialog", { "aria-label": `${WORDS[word].title} ${domain}` }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    yes.disabled = true;
    try {
      await post("/api/curate", body(word, domain, note.value, tags.value));
      dialog.close();
      tell(DONE[word], "is-good", ...shown(domain), word === "note" ? "; " : ". It takes effect with the next crawl; ", make("a", { href: "/curation#log" }, "the log"), " takes it back.");
      onDone();
    } catch (failure) {
      problem.textContent = failure.message;
      problem.hidden = false;
      yes.disabled = false;
    }
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  const show = () => preview(body(word, domain, word === "note" ? note.value : "", word === "note" ? tags.value : ""), effect);
  show();
  if (word === "note") {
    let timer = 0;
    for (const field of [note, tags]) {
      field.addEventListener("input", () => {
        window.clearTimeout(timer);
        timer = window.setTimeout(show, SETTLED);
      });
    }
  }
  return dialog;
}

const body = (word, domain, note, tags) => ({ decision: word, domain, note: note.trim(), tags: tags.split(",").map((tag) => tag.trim()).filter(Boolean) });

async function preview(decision, effect) {
  try {
    const found = await post("/api/curate/preview", decision);
    put(effect, make("h3", {}, decision.decision === "note" ? "What would change" : "The map would become, without any further request"), make("ul", { id: "preview" }, found.lines.map((line) => make("li", {}, ...shown(line)))),
      ...(found.warnings || []).map((line) => make("p", { class: "notice is-warn" }, ...shown(line))));
  } catch (problem) {
    put(effect, make("p", { class: "notice is-warn" }, problem.message));
  }
}
