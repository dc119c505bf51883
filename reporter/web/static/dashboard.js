/*
 * The dashboard: the run under way, live. Figures come by a stream; rates over time, states and errors are asked for when
 * the page opens and now and then.
 */

import { get, post } from "/static/api.js";
import { bars, lineChart } from "/static/charts.js";
import { domainLink, make, put, shown, table } from "/static/dom.js";
import { watch } from "/static/live.js";
import { attempt, start, tell } from "/static/shell.js";
import { bytes, counted, duration, moment, number, stateTone, stateWord } from "/static/words.js";

const SLOW = 5000; // milliseconds between two questions for figures that are not live
const SPANS = { "15 min": 900, "3 h": 10800, "2 days": 172800, "30 days": 2592000 };
const byId = (id) => document.getElementById(id);
let span = 900;
let me = null;
let size = null; // bytes of this run
let onTheWire = []; // domains

start(async (main, person) => {
  me = person;
  put(main, ...frame());
  watch(showLive, (isLive) => {
    byId("is-live").textContent = isLive ? "live" : "not connected, trying again";
    byId("is-live").className = `tag ${isLive ? "is-good" : "is-warn"}`;
  });
  await refresh();
  window.setInterval(() => document.hidden || refresh(), SLOW);
});

function frame() {
  return [
    make("div", { class: "head" },
      make("div", {}, make("h1", { id: "run" }, "…"), make("p", {}, make("span", { id: "is-live", class: "tag" }, "connecting"), " ", make("span", { id: "left" }))),
      make("div", { class: "actions", id: "actions" })),
    make("div", { id: "alerts" }),
    make("div", { class: "stack" },
      make("div", { class: "figures", id: "figures", role: "group", "aria-label": "Figures of this run" }),
      make("section", { class: "card" },
        make("div", { class: "chart-head" }, make("h2", {}, "Pages a second"),
          make("div", { class: "actions", role: "group", "aria-label": "Span" }, Object.entries(SPANS).map(([name, seconds]) =>
            make("button", { type: "button", class: "plain", "aria-pressed": String(seconds === span), onclick: (event) => {
              span = seconds;
              for (const button of event.target.parentElement.children) button.setAttribute("aria-pressed", String(button === event.target));
              attempt(showRates);
            } }, name)))),
        make("div", { id: "rates" }, make("p", { class: "empty" }, "No rates have been recorded yet."))),
      make("div", { class: "columns" },
        make("section", { class: "card", id: "states" }), make("section", { class: "card", id: "errors" }), make("section", { class: "card", id: "codes" }),
        make("section", { class: "card", id: "waiting" }), make("section", { class: "card", id: "work" }), make("section", { class: "card", id: "stages" }))),
  ];
}

// -- live -----------------------------------------------------------------------------------------------------------

function showLive(sample) {
  const { run, figures } = sample;
  const isPaused = sample.flags.includes("pause");
  const isAtWork = sample.stages.some((stage) => stage.is_running);
  const status = !run ? "No run yet" : `Run ${run.number} ${!isAtWork && run.status === "running" ? "is not finished; nothing is running" : isPaused ? "is paused" : statusWord(run.status)}`;
  byId("run").textContent = status;
  byId("left").textContent = leftWords(sample.left);
  const link = (name, value, href) => make("a", { class: "figure", href }, make("span", { class: "name" }, name), make("span", { class: "value" }, value));
  put(byId("figures"),
    link("pages a second", sample.pages_per_second === null || !isAtWork ? "–" : sample.pages_per_second.toFixed(1), "/runs"),
    link("crawled", number(figures.crawled), "/pages?state=processed"),
    link("waiting", number(figures.waiting), "/pages?state=queued"),
    link("failed", number(figures.failed), "/pages?state=errors"),
    link("pages known", number(figures.known), "/pages"),
    link("links", number(figures.links), "/map"),
    link("on the wire", number(figures.in_flight), "#work"),
    size ? link("read", bytes(size), "/domains") : "",
  );
  showAlerts(sample.alerts || []);
  showActions(sample, isAtWork, isPaused);
  showStages(sample);
  showWork(sample);
}

function showAlerts(alerts) {
  const place = byId("alerts");
  const state = JSON.stringify(alerts);
  if (place.dataset.state === state) return; // a screen reader says them once
  place.dataset.state = state;
  put(place, ...alerts.map((alert) => make("div", { class: "notice is-warn", role: "alert" },
    make("p", {}, make("strong", {}, ...shown(alert.name)), ": ", ...shown(alert.words), make("span", { class: "muted" }, ` since ${moment(alert.since)}`)))));
}

const statusWord = (status) => ({ running: "is under way", completed: "is complete", interrupted: "was interrupted" }[status] || status);

function leftWords(left) {
  if (!left || !left.pages) return "";
  const range = left.seconds_most > left.seconds_least ? `${duration(left.seconds_least)} to ${duration(left.seconds_most)}` : `about ${duration(left.seconds_least)}`;
  return `${counted(left.pages, "page")} in ${counted(left.domains, "domain")} left: ${range}${left.may_find_domains ? ", longer with new domains" : ""}`;
}

function showActions(sample, isAtWork, isPaused) {
  const place = byId("actions");
  const state = `${me.role} ${isAtWork} ${isPaused} ${sample.flags.includes("stop")}`;
  if (place.dataset.state === state) return;
  place.dataset.state = state;
  if (me.role !== "admin") {
    put(place);
    return;
  }
  const button = (word, what, done, tone = "") => make("button", { type: "button", class: tone, id: `do-${what}`, onclick: () => attempt(async () => {
    await post("/api/control", { action: what });
    tell(done);
  }) }, word);
  put(place,
    isPaused ? button("Resume", "resume", "The crawl goes on.", "primary") : isAtWork ? button("Pause", "pause", "Within two seconds no request leaves.") : null,
    isAtWork ? button("Stop", "stop", "The stages finish what is in flight, save and end.", "danger") : null,
    isAtWork ? button("Reload config", "reload", "Each stage reads the config again.") : null,
  );
  put(place, ...[...place.childNodes].filter((node) => node.nodeType === 1));
}

function showStages(sample) {
  const rows = sample.stages.map((stage) => {
    const tone = stage.is_stuck ? "is-bad" : stage.is_running ? "is-good" : "";
    return { ...stage, tone };
  });
  put(byId("stages"), make("h2", {}, "Stages"), rows.length ? table([
    { name: "Stage", cell: (row) => row.name },
    { name: "Health", cell: (row) => make("span", { class: `tag ${row.tone}` }, row.is_stuck ? "stuck" : row.is_running ? row.doing || "running" : "not running") },
    { name: "Heartbeat", cell: (row) => (row.heartbeat_age_seconds === null ? "–" : `${duration(row.heartbeat_age_seconds)} ago`) },
    { name: "Memory", isNumber: true, cell: (row) => bytes(row.memory_bytes) },
  ], rows, { label: "Stages" }) : make("p", { class: "empty" }, "Nothing is running."));
}

function showWork(sample) {
  const due = sample.next_due;
  const rows = onTheWire.slice(0, 12).map((domain) => make("li", {}, domainLink(domain)));
  put(byId("work"), make("h2", {}, "On the wire now"),
    rows.length ? make("ul", { class: "plain rows" }, rows) : make("p", { class: "empty" }, sample.figures.in_flight ? `${counted(sample.figures.in_flight, "request")} under way.` : "No request is under way."),
    due ? make("p", { class: "small" }, "Next request: ", domainLink(due.domain), ` ${due.seconds > 0 ? `in ${due.seconds.toFixed(1)} s` : "now"}`) : "");
}

// -- asked for now and then -----------------------------------------------------------------------------------------

async function refresh() {
  await Promise.all([showFigures(), showRates(), showWaiting()].map((part) => part.catch((problem) => {
    if (problem.status === 401) throw problem;
  })));
}

async function showFigures() {
  let stats;
  try {
    stats = await get("/api/stats");
  } catch (problem) {
    if (problem.slug !== "no-map") throw problem;
    for (const id of ["states", "errors", "codes"]) byId(id).hidden = true;
    return;
  }
  for (const id of ["states", "errors", "codes"]) byId(id).hidden = false;
  size = stats.bytes || null;
  byId("codes").hidden = !Object.keys(stats.status_codes || {}).length; // maps of earlier versions have not counted them
  const list = (title, rows, nothing) => [make("h2", {}, title, make("span", { class: "muted small" }, ` run ${stats.run.id}`)), rows.length ? bars(rows) : make("p", { class: "empty" }, nothing)];
  const sorted = (counts) => Object.entries(counts || {}).filter(([, value]) => value).sort((a, b) => b[1] - a[1]);
  put(byId("states"), ...list("Pages by state", sorted(stats.states).map(([state, value]) =>
    ({ label: stateWord(state), value, href: `/pages?state=${encodeURIComponent(state)}`, tone: stateTone(state) })), "No page is known yet."));
  put(byId("errors"), ...list("Failures by kind", sorted(stats.error_slugs).map(([slug, value]) =>
    ({ label: shown(slug), value, href: `/pages?${new URLSearchParams({ error: slug })}`, tone: "is-bad" })), "Nothing has failed."));
  put(byId("codes"), ...list("Status codes", sorted(stats.status_codes).map(([code, value]) =>
    ({ label: code, value, href: `/pages?${new URLSearchParams({ status: code })}`, tone: code >= 400 ? "is-bad" : "" })), "No answer has come in yet."));
}

async function showRates() {
  const found = await get("/api/stats/timeseries", { seconds: span });
  const points = (found.points || []).map((point) => [new Date(point.at).getTime(), point.pages_per_second]);
  if (points.length < 2) return;
  const failed = (found.points || []).map((point) => [new Date(point.at).getTime(), point.errors_per_second ?? null]);
  put(byId("rates"), lineChart(points, { label: "Pages a second", unit: "pages a second", more: failed.some(([, value]) => value) ? failed : null, format: (value) => Number(value ?? 0).toLocaleString("en", { maximumFractionDigits: 1 }) }),
    make("p", { class: "small muted" }, make("span", { class: "legend-line" }), "crawled", failed.some(([, value]) => value) ? [" ", make("span", { class: "legend-line is-bad" }), "failed"] : ""));
}

async function showWaiting() {
  const found = await get("/api/frontier/waiting");
  const place = byId("waiting");
  onTheWire = found.on_the_wire || [];
  const rows = found.domains.filter((row) => row.pages); // others have nothing left to visit
  put(place, make("h2", {}, "Domains that wait, and why"), rows.length ? table([
    { name: "Domain", cell: (row) => domainLink(row.domain) },
    { name: "Why", cell: (row) => shown(row.words || row.reason) },
    { name: "Until", cell: (row) => (row.seconds === null || row.seconds === undefined ? "–" : duration(row.seconds)) },
    { name: "Pages", isNumber: true, cell: (row) => make("a", { href: `/pages?${new URLSearchParams({ domain: row.domain, state: "queued" })}` }, number(row.pages)) },
  ], rows.slice(0, 15), { label: "Domains that wait" }) : make("p", { class: "empty" }, "No domain waits."));
  if (rows.length > 15) place.append(make("p", { class: "small muted" }, `and ${found.total > found.domains.length ? "more than " : ""}${number(rows.length - 15)} more`));
}
