/*
 * A map on a canvas: zoom, pan, labels, a selected domain (or page) with its neighbours. Canvas2D, no other parts.
 *
 *   const map = createCanvasMap(canvas, data, { onSelect: (index) => …, onSelectLink: (from, to, links) => … });
 *
 * `index` is a node, or null. Links can be chosen where there is an `onSelectLink`. `data` is the JSON that
 * `sumi-ripple map` writes (version 1), or a level of the web face. Names and titles come from strangers: here they are
 * only ever drawn as text. Colours are the CSS variables of the canvas (see COLOURS); call `restyle` when they change.
 */

const COLOURS = ["paper", "ink", "muted", "edge", "outgoing", "incoming", "mark", "new", "vanished"];
const NEW = 1; // in nodes.change and link_changes, where two runs are compared
const VANISHED = 2;
const FAILED = new Set(["dead_link", "unreachable", "failed", "rate_limited", "content_mismatch"]); // states of pages
const UNVISITED = new Set(["discovered", "queued", "fetching", "depth_exceeded", "request_limit_hit", "rate_limited"]);
const LABEL_FONT = "ui-sans-serif, system-ui, 'Segoe UI', Roboto, sans-serif";
const MOST_EDGES_DRAWN = 5000; // at one time; zooming in shows those that are left out
const MOST_LABELS = 400;
const ALWAYS_LABELLED = 60; // domains by importance; others once they are large enough to be told apart
const QUALITY_FIRST = 20; // quality domains that are labelled before all others
const LEAST = 1.3; // pixels of a radius
const LEAST_QUALITY = 3.4;
const OVER_DISCS = 10; // the most important domains, whose labels may cover other discs where there is no room
const DISC = 1; // what lies on a part of the canvas
const LABEL = 2;
const PIXELS_AROUND = 6; // a click this near to a domain means it
const ZOOM_STEP = 1.35;
const ROOM = { side: 40, top: 28, bottom: 72 }; // pixels that a fitted map leaves free: labels, legend

export function createCanvasMap(canvas, data, { onSelect = () => {}, onSelectLink = null } = {}) {
  const context = canvas.getContext("2d");
  const nodes = data.nodes;
  const count = nodes.name.length;
  const links = data.links;
  const neighbours = listNeighbours(count, links);
  const isQuality = (index) => data.classes[nodes.class[index]] === "quality";
  const byImportance = Array.from({ length: count }, (_, index) => index)
    .sort((a, b) => nodes.r[b] - nodes.r[a] || isQuality(b) - isQuality(a) || nodes.known[b] - nodes.known[a] || a - b);
  // Nobody may link to the quality domains, so that they are small; but they are what people know. Some are labelled first.
  const known = byImportance.filter(isQuality).sort((a, b) => nodes.known[b] - nodes.known[a] || a - b).slice(0, QUALITY_FIRST);
  const byName = [...known, ...byImportance.filter((index) => !known.includes(index))];
  const bounds = boundsOf(nodes, count);
  const view = { x: 0, y: 0, scale: 1, width: 1, height: 1, ratio: 1 };
  const hidden = new Set(); // classes
  let colours = {};
  let selected = null;
  let hovered = null;
  let matches = null; // Set of domains that a search found; null: no search
  let filter = null; // (index) => is it shown? null: all are
  let path = []; // nodes of a path that is drawn above the links
  let chosenLink = null; // its place in `links`
  const changes = nodes.change || null;
  const linkChanges = data.link_changes || null;
  const isGroups = data.level === "communities";
  let isFitted = true;
  let frame = 0;

  // -- the view ---------------------------------------------------------------------------------------------------

  const screenX = (x) => (x - view.x) * view.scale + view.width / 2;
  const screenY = (y) => (y - view.y) * view.scale + view.height / 2;
  const radiusOf = (index) => Math.max(nodes.r[index] * view.scale, isQuality(index) && !nodes.state ? LEAST_QUALITY : LEAST);
  const isShown = (index) => !hidden.has(nodes.class[index]) && (filter === null || filter(index));

  function leastScale() {
    const width = bounds.right - bounds.left || 1;
    const height = bounds.bottom - bounds.top || 1;
    const free = { width: view.width - 2 * ROOM.side, height: view.height - ROOM.top - ROOM.bottom };
    return Math.max(Math.min(free.width / width, free.height / height, 2.4), 0.001);
  }

  function fit() {
    isFitted = true;
    view.scale = leastScale();
    view.x = (bounds.left + bounds.right) / 2;
    view.y = (bounds.top + bounds.bottom) / 2 + (ROOM.bottom - ROOM.top) / 2 / view.scale;
    redraw();
  }

  function zoomAt(factor, atX, atY) {
    isFitted = false;
    const scale = Math.min(Math.max(view.scale * factor, leastScale() * 0.5), 12);
    const dx = atX - view.width / 2;
    const dy = atY - view.height / 2;
    view.x += dx / view.scale - dx / scale;
    view.y += dy / view.scale - dy / scale;
    view.scale = scale;
    redraw();
  }

  function panBy(dx, dy) {
    isFitted = false;
    view.x = Math.min(Math.max(view.x - dx / view.scale, bounds.left), bounds.right);
    view.y = Math.min(Math.max(view.y - dy / view.scale, bounds.top), bounds.bottom);
    redraw();
  }

  /** Bring a domain into view: the view moves only if it is near an edge, and zooms in if all is tiny. */
  function reveal(index) {
    isFitted = false;
    view.scale = Math.max(view.scale, 0.8);
    const x = screenX(nodes.x[index]);
    const y = screenY(nodes.y[index]);
    const margin = Math.min(view.width, view.height) * 0.2;
    if (x < margin || y < margin || x > view.width - margin || y > view.height - margin) {
      view.x = nodes.x[index];
      view.y = nodes.y[index];
    }
    redraw();
  }

  function resize() {
    const box = canvas.getBoundingClientRect();
    view.width = Math.max(box.width, 1);
    view.height = Math.max(box.height, 1);
    view.ratio = Math.min(window.devicePixelRatio || 1, 3);
    canvas.width = Math.round(view.width * view.ratio);
    canvas.height = Math.round(view.height * view.ratio);
    if (isFitted) fit();
    else redraw();
  }

  // -- drawing ----------------------------------------------------------------------------------------------------

  function redraw() {
    if (!frame) frame = requestAnimationFrame(draw);
  }

  function restyle() {
    const style = getComputedStyle(canvas);
    const read = (name) => style.getPropertyValue(`--${name}`).trim();
    colours = Object.fromEntries(COLOURS.map((name) => [name, read(name)]));
    colours.classes = data.classes.map((name) => read(name));
    redraw();
  }

  function draw() {
    frame = 0;
    context.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, view.width, view.height);
    const near = selected === null ? null : neighbours[selected];
    drawEdges(near);
    if (linkChanges && !near) drawChangedLinks();
    if (path.length > 1) drawPath();
    if (chosenLink !== null) drawChosenLink();
    for (let place = count - 1; place >= 0; place -= 1) drawNode(byName[place], near);
    if (selected !== null) drawRing(selected, colours.ink, 2.5);
    if (hovered !== null && hovered !== selected) drawRing(hovered, colours.muted, 1.5);
    drawLabels(near);
  }

  function drawEdges(near) {
    context.lineWidth = 1;
    context.strokeStyle = colours.edge;
    const opacity = Math.min(Math.max(9 / Math.sqrt(links.length / 3), 0.1), 0.45); // many edges are a calm ground
    context.globalAlpha = near || matches ? opacity * 0.3 : opacity;
    let drawn = 0;
    context.beginPath();
    for (let at = 0; at < links.length && drawn < MOST_EDGES_DRAWN; at += 3) {
      if (!isShown(links[at]) || !isShown(links[at + 1]) || !crossesView(links[at], links[at + 1])) continue;
      line(links[at], links[at + 1]);
      drawn += 1;
      if (drawn % 250 === 0) {
        context.stroke();
        context.beginPath();
      }
    }
    context.stroke();
    context.globalAlpha = 1;
    if (!near) return;
    for (const [others, colour, isOut] of [[near.from, colours.incoming, false], [near.to, colours.outgoing, true]]) {
      context.strokeStyle = colour;
      context.fillStyle = colour;
      context.globalAlpha = others.size > 300 ? 0.35 : 0.8;
      context.lineWidth = 1.4;
      context.beginPath();
      for (const other of others.keys()) if (isShown(other)) line(selected, other);
      context.stroke();
      if (others.size > 60) continue;
      for (const other of others.keys()) if (isShown(other)) arrow(isOut ? selected : other, isOut ? other : selected);
    }
    context.globalAlpha = 1;
  }

  function drawChangedLinks() {
    for (const [mark, colour] of [[NEW, colours.new], [VANISHED, colours.vanished]]) {
      context.strokeStyle = colour;
      context.globalAlpha = 0.75;
      context.lineWidth = 1.4;
      context.setLineDash(mark === VANISHED ? [5, 4] : []);
      context.beginPath();
      for (let place = 0; place < linkChanges.length; place += 1) {
        const [a, b] = [links[3 * place], links[3 * place + 1]];
        if (linkChanges[place] === mark && isShown(a) && isShown(b) && crossesView(a, b)) line(a, b);
      }
      context.stroke();
    }
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  function drawPath() {
    context.strokeStyle = colours.mark;
    context.fillStyle = colours.mark;
    context.lineWidth = 3;
    for (let step = 1; step < path.length; step += 1) {
      context.beginPath();
      line(path[step - 1], path[step]);
      context.stroke();
      arrow(path[step - 1], path[step]);
    }
  }

  function drawChosenLink() {
    const [a, b] = [links[chosenLink], links[chosenLink + 1]];
    context.strokeStyle = colours.mark;
    context.fillStyle = colours.mark;
    context.lineWidth = 2.5;
    context.beginPath();
    line(a, b);
    context.stroke();
    arrow(a, b);
  }

  function crossesView(a, b) {
    const ax = screenX(nodes.x[a]);
    const bx = screenX(nodes.x[b]);
    const ay = screenY(nodes.y[a]);
    const by = screenY(nodes.y[b]);
    return !((ax < 0 && bx < 0) || (ay < 0 && by < 0) || (ax > view.width && bx > view.width) ||
      (ay > view.height && by > view.height));
  }

  function line(a, b) {
    context.moveTo(screenX(nodes.x[a]), screenY(nodes.y[a]));
    context.lineTo(screenX(nodes.x[b]), screenY(nodes.y[b]));
  }

  function arrow(from, to) {
    const x = screenX(nodes.x[to]);
    const y = screenY(nodes.y[to]);
    const angle = Math.atan2(y - screenY(nodes.y[from]), x - screenX(nodes.x[from]));
    const back = radiusOf(to) + 2;
    context.beginPath();
    context.moveTo(x - back * Math.cos(angle), y - back * Math.sin(angle));
    for (const side of [-0.45, 0.45]) {
      context.lineTo(x - back * Math.cos(angle) - 8 * Math.cos(angle + side),
        y - back * Math.sin(angle) - 8 * Math.sin(angle + side));
    }
    context.fill();
  }

  function isFaded(index, near) {
    if (path.length) return !path.includes(index);
    if (near) return index !== selected && !near.all.has(index);
    return matches !== null && !matches.has(index);
  }

  function drawNode(index, near) {
    if (!isShown(index)) return;
    const x = screenX(nodes.x[index]);
    const y = screenY(nodes.y[index]);
    const radius = radiusOf(index);
    if (x < -radius || y < -radius || x > view.width + radius || y > view.height + radius) return;
    const name = data.classes[nodes.class[index]];
    const colour = colours.classes[nodes.class[index]];
    context.globalAlpha = isFaded(index, near) ? 0.16 : 1;
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    // The class is told by form too: listed domains, which are never visited, are hollow; the blacklisted are crossed.
    // A page that was not visited is hollow too.
    const isHollow = name === "stubbed" || name === "blacklisted" || UNVISITED.has(nodes.state?.[index]);
    context.fillStyle = isHollow || isGroups ? colours.paper : colour;
    context.fill();
    if (isGroups) {
      context.globalAlpha *= 0.28; // a community is a large disc: its colour is a wash, so that the map stays calm
      context.fillStyle = colour;
      context.fill();
      context.globalAlpha = isFaded(index, near) ? 0.16 : 1;
    }
    context.lineWidth = isHollow ? Math.min(Math.max(radius * 0.3, 1.2), 4) : 1;
    context.strokeStyle = isHollow || isGroups ? colour : colours.paper;
    if (isHollow || radius > 2.5) context.stroke();
    if (name === "blacklisted" && radius > 3) {
      const arm = radius * 0.62;
      context.beginPath();
      context.moveTo(x - arm, y - arm);
      context.lineTo(x + arm, y + arm);
      context.stroke();
    }
    if (matches !== null && matches.has(index)) drawRing(index, colours.mark, 2);
    if (changes && changes[index]) drawChange(index);
    if (nodes.state && FAILED.has(nodes.state[index])) drawRing(index, colours.vanished, 1.5);
    context.globalAlpha = 1;
  }

  function drawChange(index) {
    context.setLineDash(changes[index] === VANISHED ? [3, 3] : []);
    drawRing(index, changes[index] === NEW ? colours.new : colours.vanished, 2.5);
    context.setLineDash([]);
  }

  function drawRing(index, colour, width) {
    context.beginPath();
    context.arc(screenX(nodes.x[index]), screenY(nodes.y[index]), radiusOf(index) + 3, 0, 2 * Math.PI);
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.stroke();
  }

  /** Labels by importance, each where neither a label nor a disc lies yet: below, above, beside. More room, more labels. */
  function drawLabels(near) {
    const taken = occupancy(view.width, view.height);
    const least = count > 200 ? 7 : 0; // in a dense map, labels may cover small domains
    for (const index of byImportance) {
      const radius = radiusOf(index);
      if (radius < least) break;
      if (isShown(index) && !isFaded(index, near)) {
        taken.claim(screenX(nodes.x[index]) - radius, screenY(nodes.y[index]) - radius, 2 * radius, 2 * radius,
          DISC);
      }
    }
    const first = [selected, hovered].filter((index) => index !== null);
    const spacing = count > 200 && !near && !matches ? 16 : 0; // pixels above and below a label of a dense map
    const wanted = near || matches ? byName.filter((index) => !isFaded(index, near)) : byName;
    context.textBaseline = "middle";
    context.textAlign = "center";
    context.lineJoin = "round";
    let drawn = 0;
    for (const index of first) drawLabel(index, 0, taken, true, spacing);
    for (const [rank, index] of wanted.entries()) {
      if (drawn > MOST_LABELS) break;
      if (isShown(index) && !first.includes(index) && drawLabel(index, rank, taken, false, spacing)) drawn += 1;
    }
  }

  function drawLabel(index, rank, taken, isForced, spacing) {
    const x = screenX(nodes.x[index]);
    const y = screenY(nodes.y[index]);
    if (x < -60 || y < -20 || x > view.width + 60 || y > view.height + 20) return false;
    const radius = radiusOf(index);
    if (!isForced && radius < 3.2 && rank >= ALWAYS_LABELLED) return false;
    const size = radius > 14 ? 13 : 11.5;
    context.font = `${isForced || isQuality(index) ? 600 : 400} ${size}px ${LABEL_FONT}`;
    const text = shortened(nodes.shown[index], 46);
    const half = context.measureText(text).width / 2 + 2;
    const away = radius + size * 0.6 + 3;
    const places = [[x, y + away], [x, y - away], [x + radius + half + 3, y], [x - radius - half - 3, y]];
    const fits = (blocked) => places.find(([atX, atY]) => atX >= half && atX <= view.width - half &&
      taken.isFree(atX - half, atY - size * 0.5, 2 * half, size, blocked));
    let found = fits(DISC);
    if (!found && rank < OVER_DISCS) found = fits(LABEL);
    if (!found && isForced) found = [Math.min(Math.max(x, half), Math.max(view.width - half, half)), y + away];
    if (!found) return false;
    const [atX, atY] = found;
    taken.claim(atX - half, atY - size * 0.5 - spacing, 2 * half, size + 2 * spacing, LABEL);
    context.strokeStyle = colours.paper;
    context.lineWidth = 3.5;
    context.strokeText(text, atX, atY);
    context.fillStyle = colours.ink;
    context.fillText(text, atX, atY);
    return true;
  }

  // -- choosing ---------------------------------------------------------------------------------------------------

  function nodeAt(x, y) {
    let best = null;
    let nearest = Infinity;
    for (let index = 0; index < count; index += 1) {
      if (!isShown(index)) continue;
      const away = Math.hypot(screenX(nodes.x[index]) - x, screenY(nodes.y[index]) - y) - radiusOf(index);
      if (away < PIXELS_AROUND && away < nearest) {
        best = index;
        nearest = away;
      }
    }
    return best;
  }

  /** The link under a place, as its place in `links`; of several the nearest. */
  function linkAt(x, y) {
    let best = null;
    let nearest = PIXELS_AROUND;
    for (let at = 0; at < links.length; at += 3) {
      const [a, b] = [links[at], links[at + 1]];
      if (!isShown(a) || !isShown(b)) continue;
      const away = distanceToLine(x, y, screenX(nodes.x[a]), screenY(nodes.y[a]), screenX(nodes.x[b]), screenY(nodes.y[b]));
      if (away < nearest) {
        best = at;
        nearest = away;
      }
    }
    return best;
  }

  function choose(x, y) {
    const index = nodeAt(x, y);
    const link = index === null && onSelectLink ? linkAt(x, y) : null;
    if (link === null) select(index);
    else selectLink(link);
  }

  function selectLink(at) {
    selected = null;
    chosenLink = at;
    redraw();
    onSelectLink(links[at], links[at + 1], links[at + 2]);
  }

  function select(index, { isRevealed = false } = {}) {
    selected = index;
    chosenLink = null;
    if (index !== null && isRevealed) reveal(index);
    redraw();
    onSelect(index);
  }

  // -- pointers: drag pans, two fingers zoom, a click selects -----------------------------------------------------

  const pointers = new Map();
  let travelled = 0;

  function place(event) {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  function onDown(event) {
    if (event.button > 0) return;
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, place(event));
    if (pointers.size === 1) travelled = 0;
  }

  function onMove(event) {
    const now = place(event);
    const before = pointers.get(event.pointerId);
    if (!before) {
      hover(nodeAt(now.x, now.y));
      return;
    }
    if (pointers.size === 1) {
      travelled += Math.hypot(now.x - before.x, now.y - before.y);
      if (travelled > 4) panBy(now.x - before.x, now.y - before.y);
    } else {
      travelled = Infinity;
      const other = [...pointers.entries()].find(([id]) => id !== event.pointerId)[1];
      const was = Math.hypot(before.x - other.x, before.y - other.y) || 1;
      const is = Math.hypot(now.x - other.x, now.y - other.y) || 1;
      zoomAt(is / was, (now.x + other.x) / 2, (now.y + other.y) / 2);
    }
    pointers.set(event.pointerId, now);
  }

  function onUp(event) {
    const at = pointers.get(event.pointerId);
    pointers.delete(event.pointerId);
    if (at && event.type === "pointerup" && travelled <= 4) choose(at.x, at.y);
  }

  function hover(index) {
    if (index === hovered) return;
    hovered = index;
    canvas.style.cursor = index === null ? "grab" : "pointer";
    redraw();
  }

  function onWheel(event) {
    event.preventDefault();
    const at = place(event);
    const pixels = event.deltaMode === 1 ? event.deltaY * 16 : event.deltaY;
    zoomAt(Math.exp(-Math.min(Math.max(pixels, -300), 300) / 400), at.x, at.y);
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const steps = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    if (steps[event.key]) panBy(...steps[event.key]);
    else if (event.key === "+" || event.key === "=") api.zoomBy(ZOOM_STEP);
    else if (event.key === "-") api.zoomBy(1 / ZOOM_STEP);
    else if (event.key === "0") fit();
    else if (event.key === "Escape") select(null);
    else return;
    event.preventDefault();
  }

  const listeners = new AbortController();
  const listen = (event, heard, options) => canvas.addEventListener(event, heard, { ...options, signal: listeners.signal });
  listen("pointerdown", onDown);
  listen("pointermove", onMove);
  listen("pointerup", onUp);
  listen("pointercancel", onUp);
  listen("pointerleave", () => hover(null));
  listen("wheel", onWheel, { passive: false });
  listen("dblclick", (event) => zoomAt(2, place(event).x, place(event).y));
  listen("keydown", onKey);
  const resizes = new ResizeObserver(resize);
  resizes.observe(canvas);

  const api = {
    /** Let go of the canvas: another map takes its place. */
    end: () => {
      listeners.abort();
      resizes.disconnect();
      cancelAnimationFrame(frame);
    },
    fit,
    restyle,
    select,
    zoomBy: (factor) => zoomAt(factor, view.width / 2, view.height / 2),
    showMatches: (found) => {
      matches = found;
      redraw();
    },
    showClass: (index, isOn) => {
      if (isOn) hidden.delete(index);
      else hidden.add(index);
      redraw();
    },
    showOnly: (test) => {
      filter = test;
      redraw();
    },
    showPath: (indexes) => {
      path = indexes;
      redraw();
    },
    isShown,
    neighboursOf: (index) => neighbours[index],
    placeOf: (index) => ({ x: screenX(nodes.x[index]), y: screenY(nodes.y[index]) }),
    get selected() {
      return selected;
    },
  };
  restyle();
  resize();
  return api;
}

function distanceToLine(x, y, ax, ay, bx, by) {
  const length = (bx - ax) ** 2 + (by - ay) ** 2 || 1;
  const share = Math.min(Math.max(((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length, 0), 1);
  return Math.hypot(x - ax - share * (bx - ax), y - ay - share * (by - ay));
}

function boundsOf(nodes, count) {
  const bounds = { left: 0, right: 0, top: 0, bottom: 0 };
  for (let index = 0; index < count; index += 1) {
    bounds.left = Math.min(bounds.left, nodes.x[index] - nodes.r[index]);
    bounds.right = Math.max(bounds.right, nodes.x[index] + nodes.r[index]);
    bounds.top = Math.min(bounds.top, nodes.y[index] - nodes.r[index]);
    bounds.bottom = Math.max(bounds.bottom, nodes.y[index] + nodes.r[index] + 16);
  }
  return bounds;
}

/** For each domain: the domains that it links to and that link to it, with the number of links. */
function listNeighbours(count, links) {
  const found = Array.from({ length: count }, () => ({ to: new Map(), from: new Map(), all: new Set() }));
  for (let at = 0; at < links.length; at += 3) {
    const [source, target, number] = [links[at], links[at + 1], links[at + 2]];
    found[source].to.set(target, number);
    found[source].all.add(target);
    found[target].from.set(source, number);
    found[target].all.add(source);
  }
  return found;
}

/** Which parts of the canvas have a label or a disc, in cells of a few pixels. */
function occupancy(width, height) {
  const cell = 4;
  const columns = Math.ceil(width / cell) + 1;
  const rows = Math.ceil(height / cell) + 1;
  const cells = new Uint8Array(columns * rows);
  function rowsOf(x, y, w, h, visit) {
    const left = Math.max(Math.floor(x / cell), 0);
    const right = Math.min(Math.floor((x + w) / cell), columns - 1);
    const bottom = Math.min(Math.floor((y + h) / cell), rows - 1);
    for (let row = Math.max(Math.floor(y / cell), 0); row <= bottom && left <= right; row += 1) {
      if (!visit(row * columns + left, row * columns + right + 1)) return false;
    }
    return true;
  }
  return {
    isFree: (x, y, w, h, least) => rowsOf(x, y, w, h, (from, to) => cells.subarray(from, to).every((cell) => cell < least)),
    claim: (x, y, w, h, what) => rowsOf(x, y, w, h, (from, to) => cells.fill(what, from, to)),
  };
}

function shortened(text, most) {
  return text.length <= most ? text : `${text.slice(0, most / 2 - 1)}…${text.slice(-most / 2)}`;
}
