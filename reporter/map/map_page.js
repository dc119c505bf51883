/*
 * The page around the canvas: search, legend, and the panel with a domain's figures, neighbours and sample pages.
 *
 * Text from crawled sites is set as textContent, never as markup; only http and https addresses become links.
 */

const CLASS_WORDS = { quality: "quality", discovered: "discovered", stubbed: "stub", blacklisted: "blacklisted" };
const CLASS_NOTES = {
  quality: "on your list",
  discovered: "found by links",
  stubbed: "recorded, never visited",
  blacklisted: "recorded, never visited",
};
const MOST_RESULTS = 12;
const MOST_NEIGHBOURS = 12; // shown at first
const number = (value) => value.toLocaleString("en");
const counted = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;

export function startMapPage(page, data, createMap) {
  const byId = (id) => page.getElementById(id);
  const { nodes, counts } = data;
  const canvas = byId("map");
  const summary = `${number(counts.domains)} of ${counted(counts.domains_known, "domain")} · ` +
    `${number(counts.links)} of ${number(counts.links_known)} links between them · run ${data.run.id}, ${data.run.status}`;
  byId("counts").textContent = `Showing ${summary}`;
  if (counts.domains === 0) {
    page.body.classList.add("is-empty");
    byId("empty").hidden = false;
    return null;
  }
  const map = createMap(canvas, data, { onSelect: showPanel });
  const words = data.classes.map((name) => CLASS_WORDS[name] || name);

  // -- legend -----------------------------------------------------------------------------------------------------

  const inOrder = [...data.classes.entries()].sort((a, b) => isListed(a[1]) - isListed(b[1]) || a[0] - b[0]);
  for (const [index, name] of inOrder) {
    const size = nodes.class.filter((each) => each === index).length;
    if (!size) continue;
    const button = make("button", "class-switch", "");
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    button.title = CLASS_NOTES[name] || "";
    button.append(make("span", `dot is-${name}`, ""), make("span", "", `${words[index]} ${number(size)}`));
    button.addEventListener("click", () => {
      const isOn = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(isOn));
      map.showClass(index, isOn);
    });
    byId("legend").append(button);
  }
  byId("legend").append(make("span", "note", "size: quality domains that link there"));

  // -- search -----------------------------------------------------------------------------------------------------

  const search = byId("search");
  const results = byId("results");
  let found = [];
  let active = -1;

  function find() {
    const text = search.value.trim().toLowerCase();
    const hits = [];
    if (text) nodes.shown.forEach((name, index) => name.toLowerCase().includes(text) && hits.push(index));
    map.showMatches(text ? new Set(hits) : null);
    found = hits.slice(0, MOST_RESULTS);
    active = -1;
    results.replaceChildren(...found.map((index, place) => {
      const item = make("li", "", "");
      item.id = `result-${place}`;
      item.setAttribute("role", "option");
      item.append(make("span", `dot is-${data.classes[nodes.class[index]]}`, ""), make("span", "", nodes.shown[index]));
      item.addEventListener("mousedown", (event) => {
        event.preventDefault();
        choose(index);
      });
      return item;
    }));
    if (text && !hits.length) results.append(make("li", "nothing", "No domain on this map has that in its name."));
    if (hits.length > found.length) results.append(make("li", "nothing", `and ${number(hits.length - found.length)} more`));
    setOpen(Boolean(text));
  }

  function setOpen(isOpen) {
    results.hidden = !isOpen;
    search.setAttribute("aria-expanded", String(isOpen));
    mark(-1);
  }

  function mark(place) {
    active = place;
    found.forEach((_, each) => byId(`result-${each}`).setAttribute("aria-selected", String(each === place)));
    if (place >= 0) search.setAttribute("aria-activedescendant", `result-${place}`);
    else search.removeAttribute("aria-activedescendant");
  }

  function choose(index) {
    setOpen(false);
    map.showMatches(null);
    map.select(index, { isRevealed: true });
  }

  search.addEventListener("input", find);
  search.addEventListener("focus", find);
  search.addEventListener("blur", () => setOpen(false));
  search.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && found.length) mark((active + 1) % found.length);
    else if (event.key === "ArrowUp" && found.length) mark((active + found.length) % (found.length + 1) - 1);
    else if (event.key === "Enter" && found.length) choose(found[Math.max(active, 0)]);
    else if (event.key === "Escape") {
      search.value = "";
      find();
      canvas.focus();
    } else return;
    event.preventDefault();
  });

  // -- the panel --------------------------------------------------------------------------------------------------

  function showPanel(index) {
    const panel = byId("panel");
    panel.hidden = index === null;
    if (index === null) return;
    const klass = data.classes[nodes.class[index]];
    byId("name").textContent = nodes.shown[index];
    byId("class").replaceChildren(make("span", `dot is-${klass}`, ""),
      make("span", "", [words[nodes.class[index]], CLASS_NOTES[klass]].filter(Boolean).join(", ")));
    const near = map.neighboursOf(index);
    byId("figures").replaceChildren(...figuresOf(index).flatMap(([name, value]) => [make("dt", "", name), make("dd", "", value)]));
    byId("neighbours").replaceChildren(
      ...neighbourList("Linked from", near.from, "incoming", nodes.domains_in[index]),
      ...neighbourList("Links to", near.to, "outgoing", nodes.domains_out[index]),
    );
    const pages = nodes.pages[index];
    byId("pages").replaceChildren(...pages.map(pageItem));
    byId("pages-title").hidden = !pages.length;
    panel.scrollTop = 0;
  }

  function figuresOf(index) {
    const rows = [
      ["Quality domains that link here", number(nodes.quality_domains[index])],
      ["Links from them", number(nodes.links_from_quality[index])],
      ["Links in / out", `${number(nodes.links_in[index])} / ${number(nodes.links_out[index])}`],
      ["Pages crawled / known", `${number(nodes.crawled[index])} / ${number(nodes.known[index])}`],
    ];
    if (nodes.errors[index]) rows.push(["Pages failed", number(nodes.errors[index])]);
    if (nodes.waiting[index]) rows.push(["Pages waiting", number(nodes.waiting[index])]);
    if (nodes.depth[index] !== null) rows.push(["Depth", number(nodes.depth[index])]);
    if (nodes.closed[index]) rows.push(["Closed in this run", nodes.closed[index]]);
    return rows;
  }

  function neighbourList(title, others, kind, total) {
    if (!total) return [];
    const ranked = [...others.entries()].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    const list = make("ul", "", "");
    const add = (entries) => list.append(...entries.map(([other, links]) => {
      const item = make("li", "", "");
      const button = make("button", "neighbour", "");
      button.type = "button";
      button.append(make("span", `dot is-${data.classes[nodes.class[other]]}`, ""), make("span", "who", nodes.shown[other]),
        make("span", "links", counted(links, "link")));
      button.addEventListener("click", () => {
        map.select(other, { isRevealed: true });
        byId("name").focus();
      });
      item.append(button);
      return item;
    }));
    add(ranked.slice(0, MOST_NEIGHBOURS));
    const parts = [make("h3", kind, `${title} ${counted(total, "domain")}`), list];
    if (ranked.length > MOST_NEIGHBOURS) {
      const more = make("button", "more", `Show ${number(ranked.length - MOST_NEIGHBOURS)} more`);
      more.type = "button";
      more.addEventListener("click", () => {
        add(ranked.slice(MOST_NEIGHBOURS));
        more.remove();
      });
      parts.push(more);
    }
    if (total > ranked.length) parts.push(make("p", "note", `${counted(total - ranked.length, "domain")} not on this map`));
    return parts;
  }

  function pageItem([url, shown, title, state]) {
    const item = make("li", "", "");
    const link = make(isWebAddress(url) ? "a" : "span", "", title || shown);
    if (link.tagName === "A") {
      link.href = url;
      link.rel = "noreferrer noopener";
      link.target = "_blank";
    }
    item.append(link);
    const details = [title ? shown : "", state === "processed" ? "" : state.replaceAll("_", " ")].filter(Boolean);
    if (details.length) item.append(make("span", "where", details.join(" · ")));
    return item;
  }

  // -- the rest ---------------------------------------------------------------------------------------------------

  byId("close").addEventListener("click", () => {
    map.select(null);
    canvas.focus();
  });
  byId("zoom-in").addEventListener("click", () => map.zoomBy(1.35));
  byId("zoom-out").addEventListener("click", () => map.zoomBy(1 / 1.35));
  byId("fit").addEventListener("click", () => map.fit());
  page.addEventListener("keydown", (event) => {
    if (event.key === "/" && event.target !== search) {
      search.focus();
      event.preventDefault();
    } else if (event.key === "Escape" && event.target !== search && event.target !== canvas) {
      map.select(null);
      canvas.focus();
    }
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", map.restyle);

  function make(tag, classes, text) {
    const element = page.createElement(tag);
    if (classes) element.className = classes;
    element.textContent = text;
    return element;
  }

  return map;
}

function isListed(name) {
  return name === "stubbed" || name === "blacklisted";
}

function isWebAddress(text) {
  try {
    return ["https:", "http:"].includes(new URL(text).protocol);
  } catch {
    return false;
  }
}
