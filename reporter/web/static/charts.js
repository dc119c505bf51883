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
 * A chart of lines over time. `lines` are { name, tone, points }; points are [milliseconds, value or null]. Where two
 * points are further apart than `step`, nothing was recorded, and there is a gap. The pointer reads values off.
 */
export function lineChart(lines, { label, step, format = number }) {
  const all = lines.flatMap((line) => line.points);
  const known = all.filter(([, value]) => value !== null);
  const times = all.map(([at]) => at);
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const top = roundUp(Math.max(0, ...known.map(([, value]) => value)));
  const x = (at) => ROOM.left + ((at - first) / (last - first || 1)) * (WIDTH - ROOM.left - ROOM.right);
  const y = (value) => HEIGHT - ROOM.bottom - (value / top) * (HEIGHT - ROOM.top - ROOM.bottom);
  const chart = svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": inWords(label, lines, format), preserveAspectRatio: "none" });
  for (const share of [0, 0.5, 1]) {
    chart.append(svg("line", { class: "rule", x1: ROOM.left, x2: WIDTH - ROOM.right, y1: y(top * share), y2: y(top * share) }));
  }
  lines.forEach((line, place) => {
    for (const run of runsOf(line.points, step)) {
      const path = run.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
      if (!place) chart.append(svg("polygon", { class: "area", points: `${x(run[0][0])},${y(0)} ${path.join(" ")} ${x(run.at(-1)[0])},${y(0)}` }));
      chart.append(svg("polyline", { class: `line ${line.tone || ""}`, points: (path.length > 1 ? path : [...path, ...path]).join(" ") }));
    }
  });
  const cursor = svg("line", { class: "cursor", y1: ROOM.top, y2: HEIGHT - ROOM.bottom, visibility: "hidden" });
  chart.append(cursor);
  const labels = [[0, "0"], [0.5, format(top / 2)], [1, format(top)]].map(([share, text]) =>
    make("span", { class: `chart-y chart-y-${share * 2}`, "aria-hidden": "true" }, text));
  const ends = make("div", { class: "chart-x", "aria-hidden": "true" }, make("span", {}, clock(first)), make("span", {}, clock(last)));
  const legend = make("span", {}, lines.flatMap((line) => [make("span", { class: `legend-line ${line.tone || ""}` }), `${line.name} `]));
  const read = make("span", { class: "num" });
  const frame = make("figure", { class: "chart-frame" }, chart, ...labels, ends, make("figcaption", { class: "small muted" }, legend, read));
  readOff(frame, chart, { lines, x, cursor, format, say: (words) => { read.textContent = words; } });
  return frame;
}

function inWords(label, lines, format) {
  const parts = lines.map((line) => {
    const known = line.points.filter(([, value]) => value !== null).map(([, value]) => value);
    return `${line.name}: ${known.length} values, highest ${format(Math.max(0, ...known))}, newest ${format(known.at(-1) ?? 0)}`;
  });
  return `${label}. ${parts.join(". ")}`;
}

/** Under the pointer: the time and the values of the nearest point. `frame.dataset.held` is set meanwhile. */
function readOff(frame, chart, { lines, x, cursor, format, say }) {
  const { points } = lines[0];
  chart.addEventListener("pointermove", (event) => {
    const box = chart.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * WIDTH;
    const place = points.reduce((best, [moment], index) => (Math.abs(x(moment) - at) < Math.abs(x(points[best][0]) - at) ? index : best), 0);
    frame.dataset.held = "yes";
    cursor.setAttribute("x1", x(points[place][0]));
    cursor.setAttribute("x2", x(points[place][0]));
    cursor.setAttribute("visibility", "visible");
    say(`${clock(points[place][0])}: ${lines.map((line) => `${format(line.points[place]?.[1] ?? 0)} ${line.name}`).join(", ")}`);
  });
  chart.addEventListener("pointerleave", () => {
    delete frame.dataset.held;
    cursor.setAttribute("visibility", "hidden");
    say("");
  });
}

function clock(at) {
  if (!Number.isFinite(at)) return "";
  const date = new Date(at);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? date.toLocaleTimeString() : date.toLocaleString(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
}

/** The points in pieces without a gap: of null, or of more than `step` milliseconds and a half. */
export function runsOf(points, step = Infinity) {
  const runs = [];
  let run = [];
  for (const point of points) {
    const isGap = point[1] === null || point[1] === undefined;
    if (run.length && (isGap || point[0] - run.at(-1)[0] > step * 1.5)) {
      runs.push(run);
      run = [];
    }
    if (!isGap) run.push(point);
  }
  if (run.length) runs.push(run);
  return runs;
}

/** Bars in a list. Rows are { label, value, href, tone, shown }; every bar links to what it counts. */
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
