/*
 * The map drawn by sigma (WebGL): the same door as `createCanvasMap` in reporter/map/canvas_map.js, for maps of thousands
 * of domains on machines with a graphics card. Built by `make web` into static/built/; nothing needs it.
 */

import Graph from "graphology";
import Sigma from "sigma";

const NEW = 1; // in nodes.change and link_changes
const VANISHED = 2;

export function createSigmaMap(canvas, data, { onSelect = () => {}, onSelectLink = null } = {}) {
  const { nodes, links } = data;
  const count = nodes.name.length;
  const neighbours = Array.from({ length: count }, () => ({ to: new Map(), from: new Map(), all: new Set() }));
  const graph = new Graph({ type: "directed", multi: false });
  const hidden = new Set();
  let colours = {};
  let selected = null;
  let hovered = null;
  let chosen = null; // key of a link
  let matches = null;
  let filter = null;
  let path = [];

  for (let index = 0; index < count; index += 1) {
    graph.addNode(String(index), { x: nodes.x[index], y: -nodes.y[index], size: nodes.r[index], label: nodes.shown[index] });
  }
  for (let at = 0; at < links.length; at += 3) {
    const [source, target, number] = [links[at], links[at + 1], links[at + 2]];
    neighbours[source].to.set(target, number);
    neighbours[source].all.add(target);
    neighbours[target].from.set(source, number);
    neighbours[target].all.add(source);
    if (!graph.hasEdge(String(source), String(target))) {
      graph.addEdgeWithKey(`${source}-${target}`, String(source), String(target), { links: number, change: data.link_changes?.[at / 3] || 0 });
    }
  }

  const ground = canvas.ownerDocument.createElement("div");
  ground.className = "sigma-ground";
  ground.tabIndex = 0;
  ground.setAttribute("role", "img");
  ground.setAttribute("aria-label", canvas.getAttribute("aria-label") || "The map");
  canvas.hidden = true;
  canvas.after(ground);

  const isShown = (index) => !hidden.has(nodes.class[index]) && (filter === null || filter(index));
  const isFaded = (index) => {
    if (path.length) return !path.includes(index);
    if (selected !== null) return index !== selected && !neighbours[selected].all.has(index);
    return matches !== null && !matches.has(index);
  };

  const isQuality = (index) => data.classes[nodes.class[index]] === "quality";
  const isNamed = (index) => (selected === null ? isQuality(index) && !nodes.state && matches === null : !isFaded(index));

  /** The chosen node, or the one under the pointer: a ring, and its name on the paper of the page (sigma's is white). */
  function drawHighlighted(context, node, settings) {
    const size = settings.labelSize;
    context.beginPath();
    context.arc(node.x, node.y, node.size + 2.5, 0, 2 * Math.PI);
    context.lineWidth = 2;
    context.strokeStyle = colours.ink;
    context.stroke();
    if (!node.label) return;
    context.font = `600 ${size}px ${settings.labelFont}`;
    const left = node.x + node.size + 1; // the plain label begins here too, and is covered
    context.fillStyle = colours.paper;
    context.fillRect(left, node.y - size * 0.5 - 4, context.measureText(node.label).width + 10, size + 8);
    context.fillStyle = colours.ink;
    context.fillText(node.label, left + 5, node.y + size / 3);
  }

  readColours();
  const sigma = new Sigma(graph, ground, {
    itemSizesReference: "positions",
    zoomToSizeRatioFunction: (ratio) => ratio,
    labelColor: { color: colours.ink },
    labelFont: "ui-sans-serif, system-ui, sans-serif",
    labelRenderedSizeThreshold: 7,
    enableEdgeEvents: onSelectLink !== null,
    defaultDrawNodeHover: drawHighlighted,
    nodeReducer: (key, attributes) => {
      const index = Number(key);
      const change = nodes.change?.[index];
      const colour = change === NEW ? colours.new : change === VANISHED ? colours.vanished : colours.classes[nodes.class[index]];
      const isMatch = matches !== null && matches.has(index);
      return { ...attributes, hidden: !isShown(index), color: isFaded(index) ? colours.line : isMatch ? colours.mark : colour,
        label: isFaded(index) ? "" : attributes.label, forceLabel: isNamed(index), highlighted: index === selected || index === hovered, zIndex: isFaded(index) ? 0 : 1 };
    },
    edgeReducer: (key, attributes) => {
      const [source, target] = key.split("-").map(Number);
      let color = colours.line;
      let size = 1;
      if (selected === source) [color, size] = [colours.outgoing, 2];
      else if (selected === target) [color, size] = [colours.incoming, 2];
      else if (attributes.change) [color, size] = [attributes.change === NEW ? colours.new : colours.vanished, 2];
      const step = path.indexOf(source);
      if (key === chosen || (step >= 0 && path[step + 1] === target)) [color, size] = [colours.mark, 3];
      return { ...attributes, color, size, hidden: !isShown(source) || !isShown(target) };
    },
    zIndex: true,
  });

  function readColours() {
    const style = getComputedStyle(ground);
    const read = (name) => style.getPropertyValue(`--${name}`).trim();
    colours = Object.fromEntries(["paper", "ink", "line", "outgoing", "incoming", "mark", "new", "vanished"].map((name) => [name, read(name)]));
    colours.classes = data.classes.map(read);
  }

  const redraw = () => sigma.refresh({ skipIndexation: true });

  function select(index, { isRevealed = false } = {}) {
    selected = index;
    chosen = null;
    if (index !== null && isRevealed) {
      const at = sigma.getNodeDisplayData(String(index));
      sigma.getCamera().animate({ x: at.x, y: at.y, ratio: Math.min(sigma.getCamera().ratio, 0.5) }, { duration: 200 });
    }
    redraw();
    onSelect(index);
  }

  sigma.on("clickNode", ({ node }) => select(Number(node)));
  sigma.on("clickStage", () => select(null));
  sigma.on("enterNode", ({ node }) => {
    hovered = Number(node);
    redraw();
  });
  sigma.on("leaveNode", () => {
    hovered = null;
    redraw();
  });
  if (onSelectLink) {
    sigma.on("clickEdge", ({ edge }) => {
      selected = null;
      chosen = edge;
      redraw();
      const [source, target] = edge.split("-").map(Number);
      onSelectLink(source, target, graph.getEdgeAttribute(edge, "links"));
    });
  }
  ground.addEventListener("keydown", (event) => {
    const camera = sigma.getCamera();
    const step = 0.08 * camera.ratio;
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    if (moves[event.key]) camera.setState({ ...camera.getState(), x: camera.x + moves[event.key][0], y: camera.y + moves[event.key][1] });
    else if (event.key === "+" || event.key === "=") api.zoomBy(1.35);
    else if (event.key === "-") api.zoomBy(1 / 1.35);
    else if (event.key === "0") api.fit();
    else if (event.key === "Escape") select(null);
    else return;
    event.preventDefault();
  });

  const api = {
    end: () => {
      sigma.kill();
      ground.remove();
      canvas.hidden = false;
    },
    fit: () => sigma.getCamera().animatedReset({ duration: 200 }),
    restyle: () => {
      readColours();
      sigma.setSetting("labelColor", { color: colours.ink });
      redraw();
    },
    select,
    zoomBy: (factor) => sigma.getCamera().animate({ ratio: sigma.getCamera().ratio / factor }, { duration: 150 }),
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
    placeOf: (index) => sigma.graphToViewport({ x: nodes.x[index], y: -nodes.y[index] }),
    get selected() {
      return selected;
    },
  };
  return api;
}
