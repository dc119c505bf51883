/*
 * Elements with text. Everything that a crawled site wrote goes through `shown`: it becomes text nodes, never markup, and
 * characters that cannot be seen or that turn the reading direction are shown by their code.
 */

const ODD = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff0-\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** An element: `make("a", { href, class: "x" }, "text", otherElement)`. Strings become text nodes. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Put these in place of what an element holds; null, undefined, false and "" are left out. */
export function put(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false && child !== ""));
}

/**
 * Bring an element to hold these, changing only what differs: whoever has the focus in it, or is about to click, keeps it.
 * For parts that change by themselves. Listeners of the children are not carried over, so these are links and text.
 */
export function refresh(element, ...children) {
  const wanted = make("div");
  put(wanted, ...children);
  bringTo(element, wanted);
}

function bringTo(element, wanted) {
  const before = [...element.childNodes];
  const after = [...wanted.childNodes];
  after.forEach((node, place) => {
    const was = before[place];
    if (!was) element.append(node);
    else if (was.nodeName !== node.nodeName) was.replaceWith(node);
    else if (node.nodeType !== Node.ELEMENT_NODE) {
      if (was.data !== node.data) was.data = node.data;
    } else {
      for (const { name } of [...was.attributes]) if (!node.hasAttribute(name)) was.removeAttribute(name);
      for (const { name, value } of node.attributes) if (was.getAttribute(name) !== value) was.setAttribute(name, value);
      bringTo(was, node);
    }
  });
  for (const node of before.slice(after.length)) node.remove();
}

/** A text of strangers as nodes: visible characters as they are, others as a small code like U+202E. */
export function shown(text, most = 300) {
  const all = String(text ?? "");
  const cut = all.length > most ? `${all.slice(0, most - 1)}…` : all;
  const nodes = [];
  let from = 0;
  for (const match of cut.matchAll(ODD)) {
    nodes.push(cut.slice(from, match.index));
    const code = match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    nodes.push(make("span", { class: "odd", title: "a character that cannot be seen" }, `U+${code}`));
    from = match.index + match[0].length;
  }
  nodes.push(cut.slice(from));
  return nodes.filter((node) => node !== "");
}

export function isWebAddress(text) {
  try {
    return ["https:", "http:"].includes(new URL(text).protocol);
  } catch {
    return false;
  }
}

/** A link out of the face to a crawled page: only http and https, without a referrer. Anything else stays text. */
export function outside(url, ...children) {
  if (!isWebAddress(url)) return make("span", {}, ...children);
  return make("a", { href: url, rel: "noreferrer noopener external", target: "_blank" }, ...children);
}

/** An address of the face; members without a value are left out. */
export function to(path, query) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

export const pageLink = (url, ...children) => make("a", { href: to("/page", { url }), class: "url" }, ...children);
export const csvLink = (name, query = {}, words = "CSV") => make("a", { class: "button", href: to(`/api/export/${name}.csv`, query), download: `${name}.csv` }, words);
export const domainLink = (domain, ...children) =>
  make("a", { href: `/domain?${new URLSearchParams({ domain })}`, class: "host" }, ...(children.length ? children : shown(domain)));

export function dot(klass) {
  return make("span", { class: `dot is-${klass}`, "aria-hidden": "true" });
}

/** A table: columns are { name, cell: (row) => node | string, isNumber }. On a phone each row becomes a card. */
export function table(columns, rows, { label } = {}) {
  const head = make("tr", {}, columns.map((column) => make("th", { scope: "col", class: column.isNumber ? "num" : null }, column.name)));
  const body = rows.map((row) => make("tr", {}, columns.map((column) =>
    make("td", { class: column.isNumber ? "num" : null, "data-name": column.name }, ...[column.cell(row)].flat()))));
  return make("div", { class: "table", tabindex: "0", role: "region", "aria-label": label || "Table" },
    make("table", { class: "as-cards" }, make("thead", {}, head), make("tbody", {}, body)));
}

/** A button that goes on with a list. What goes wrong is said beside it; the focus goes to what is new. */
export function moreButton(more) {
  const problem = make("p", { role: "alert", class: "small", hidden: true });
  const button = make("button", { type: "button" }, "Show more");
  const place = make("div", {}, button, problem);
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await more();
      place.nextElementSibling?.querySelector("a, button")?.focus();
      place.remove();
    } catch (failure) {
      problem.textContent = failure.message;
      problem.hidden = false;
      button.disabled = false;
    }
  });
  return place;
}

export function card(title, ...children) {
  return make("section", { class: "card" }, title ? make("h2", {}, ...[title].flat()) : null, ...children);
}

/** A list of names and values. A value may be a node, a list of nodes or a string; those without a value are left out. */
export function facts(rows) {
  const list = make("dl", { class: "facts" });
  for (const [name, value] of rows) {
    if (value === null || value === undefined || value === "" || (Array.isArray(value) && !value.length)) continue;
    list.append(make("dt", {}, name), make("dd", {}, ...[value].flat()));
  }
  return list;
}

const SVG = "http://www.w3.org/2000/svg";
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

export function ripple() {
  return svg("svg", { width: 72, height: 72, viewBox: "0 0 72 72", "aria-hidden": "true" },
    svg("circle", { class: "drop", cx: 36, cy: 36, r: 5 }), svg("circle", { cx: 36, cy: 36, r: 14 }),
    svg("circle", { cx: 36, cy: 36, r: 24 }), svg("circle", { cx: 36, cy: 36, r: 34 }));
}
