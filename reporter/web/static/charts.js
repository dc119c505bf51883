/* Charts as SVG: a line over time, and bars in a list. No other parts. */

import { make, svg } from "/static/dom.js";
import { number } from "/static/words.js";

const WIDTH = 640;
const HEIGHT = 176;
const ROOM = { left: 40, right: 6, top: 8, bottom: 22 };

/** A round number at or above a value: 1, 2 or 5 times a power of ten. */
export function roundUp(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * 0.999);
}

/**
 * A line chart. `points` are [milliseconds, value or null]; a null is a gap. `more` is a second line with the same times.
 * `unit` goes into the words that a screen reader gets.
 */
export function lineChart(points, { label, unit = "", more = null, format = number } = {}) {
  const known = points.filter(([, value]) => value !== null);
  const times = points.map(([at]) => at);
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const top = roundUp(Math.max(0, ...known.map(([, value]) => value), ...(more || []).map(([, value]) => value ?? 0)));
  const x = (at) => ROOM.left + ((at - first) / (last - first || 1)) * (WIDTH - ROOM.left - ROOM.right);
  const y = (value) => HEIGHT - ROOM.bottom - (value / top) * (HEIGHT - ROOM.top - ROOM.bottom);
  const newest = known.length ? known[known.length - 1][1] : null;
  const words = `${label}: ${known.length} values, highest ${format(Math.max(0, ...known.map(([, value]) => value)))} ${unit}, newest ${format(newest)} ${unit}`;
  const chart = svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": words, preserveAspectRatio: "none" });
  for (const share of [0, 0.5, 1]) {
    chart.append(svg("line", { class: "rule", x1: ROOM.left, x2: WIDTH - ROOM.right, y1: y(top * share), y2: y(top * share) }));
  }
  for (const run of runsOf(points)) {
    const line = run.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
    chart.append(svg("polygon", { class: "area", points: `${x(run[0][0])},${y(0)} ${line.join(" ")} ${x(run[run.length - 1][0])},${y(0)}` }));
    chart.append(svg("polyline", { class: "line", points: line.join(" ") }));
  }
  for (const run of runsOf(more || [])) {
    chart.append(svg("polyline", { class: "line is-bad", points: run.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ") }));
  }
  const frame = make("figure", { class: "chart-frame" }, chart);
  const labels = [[0, "0"], [0.5, format(top / 2)], [1, format(top)]].map(([share, text]) =>
    make("span", { class: `chart-y chart-y-${share * 2}`, "aria-hidden": "true" }, text));
  const ends = make("div", { class: "chart-x", "aria-hidden": "true" }, make("span", {}, clock(first)), make("span", {}, clock(last)));
  frame.append(...labels, ends);
  return frame;
}

function clock(at) {
  if (!Number.isFinite(at)) return "";
  const date = new Date(at);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? date.toLocaleTimeString() : date.toLocaleString(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
}

/** The points in pieces without a gap. */
export function runsOf(points) {
  const runs = [];
  let run = [];
  for (const point of points) {
    if (point[1] === null || point[1] === undefined) {
      if (run.length) runs.push(run);
      run = [];
    } else run.push(point);
  }
  if (run.length) runs.push(run);
  return runs;
}

/** Bars in a list. Rows are { label, value, href, tone, note }; every bar links to what it counts. */
export function bars(rows, { most = Math.max(1, ...rows.map((row) => row.value)) } = {}) {
  return make("ul", { class: "bars" }, rows.map((row) => {
    const width = row.value ? Math.max((row.value / most) * 100, 0.8) : 0;
    const strip = svg("svg", { viewBox: "0 0 100 5", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { class: "ground", x: 0, y: 0, width: 100, height: 5, rx: 1 }),
      svg("rect", { class: "bar-fill", x: 0, y: 0, width: width.toFixed(2), height: 5 }));
    const parts = [make("span", { class: "label" }, ...[row.label].flat()), make("span", { class: "value" }, row.shown || number(row.value)), strip];
    return make("li", { class: row.tone || null }, row.href ? make("a", { href: row.href }, ...parts) : make("span", { class: "row" }, ...parts));
  }));
}
