/*
 * The dashboard: the run under way, live. Figures come by a stream; rates over time, states, errors and waits are asked
 * for when the page opens and now and then. What changes by itself is changed in place, so that nobody loses the focus.
 */

import { get, post } from "/static/api.js";
import { bars, lineChart } from "/static/charts.js";
import { domainLink, make, pageLink, put, refresh, shown, table, to } from "/static/dom.js";
import { watch } from "/static/live.js";
import { attempt, start, tell } from "/static/shell.js";
import { ago, bytes, counted, duration, moment, number, stateTone, stateWord, until, waitWord } from "/static/words.js";

const SLOW = 5000; // milliseconds between two questions for figures that are not live
const SPANS = { "15 min": 900, "3 h": 10800, "2 days": 172800, "30 days": 2592000, "all": 3155673600 };
const MEASURES = {
  pages: { title: "Pages a second", lines: [["crawled", "pages_per_second", ""], ["failed", "errors_per_second", "is-bad"]] },
  requests: { title: "Requests a second", lines: [["requests", "requests_per_second", ""]] },
  frontier: { title: "Pages that wait", lines: [["waiting", "waiting", ""]] },
  known: { title: "Pages known", lines: [["known", "known", ""]] },
};
const LISTED = 8; // rows of a card; a link leads to all
const byId = (id) => document.getElementById(id);
let span = 900;
let measure = "pages";
let me = null;
let size = null; // bytes of this run
let newest = null; // the newest sample
let hasMap = false;

start(async (main, person) => {
  me = person;
  put(main, ...frame());
  await new Promise((resolve) => {
    watch((sample) => {
      const isOther = newest && JSON.stringify(newest.run) !== JSON.stringify(sample.run);
      newest = sample;
      showLive(sample);
      if (isOther) update();
      resolve();
    }, (isLive) => {
      byId("is-live").textContent = isLive ? "live" : "not connected, trying again";
      byId("is-live").className = `tag ${isLive ? "is-good" : "is-warn"}`;
      if (!isLive) resolve();
    });
  });
  await update();
  window.setInterval(() => document.hidden || update(), SLOW);
});

function frame() {
  const choice = (name, entries, chosen, choose) => make("div", { class: "actions", role: "group", "aria-label": name }, Object.entries(entries).map(([word, value]) =>
    make("button", { type: "button", class: "plain", "aria-pressed": String(value === chosen), onclick: (event) => {
      choose(value);
      for (const button of event.target.parentElement.children) button.setAttribute("aria-pressed", String(button === event.target));
      attempt(showRates);
    } }, word)));
  const measures = Object.fromEntries(Object.keys(MEASURES).map((name) => [name, name]));
  const cards = [["work", "waiting", "stages"], ["states", "codes"], ["errors"]];
  return [
    make("div", { class: "head" },
      make("div", {}, make("h1", { id: "run" }, "Connecting …"), make("p", {}, make("span", { id: "is-live", class: "tag" }, "connecting"), " ", make("span", { id: "left" }))),
      make("div", { class: "actions", id: "actions" })),
    make("div", { id: "alerts" }),
    make("div", { class: "stack" },
      make("div", { class: "figures", id: "figures", role: "group", "aria-label": "Figures of this run" }),
      make("section", { class: "card", id: "rates-card" },
        make("div", { class: "chart-head" }, make("h2", { id: "rates-title" }, MEASURES[measure].title),
          choice("Measure", measures, measure, (value) => { measure = value; }),
          choice("Span", SPANS, span, (value) => { span = value; })),
        make("div", { id: "rates" }, make("p", { class: "empty" }, "No rates have been recorded yet."))),
      make("div", { class: "thirds" }, cards.map((ids) => make("div", { class: "stack" }, ids.map((id) => make("section", { class: "card", id, hidden: true })))))),
  ];
}

/** The part of an address that names the run under way; the newest complete one needs no name. */
const ofRun = () => (newest?.run && newest.run.status !== "completed" ? { run: newest.run.number } : {});

// -- live -----------------------------------------------------------------------------------------------------------

function showLive(sample) {
  const { run, figures } = sample;
  const isPaused = sample.flags.includes("pause");
  const isAtWork = sample.stages.some((stage) => stage.is_running);
  const status = !run ? "No run yet" : `Run ${run.number} ${!isAtWork && run.status === "running" ? "is not finished; nothing is running" : isPaused ? "is paused" : statusWord(run)}`;
  byId("run").textContent = status;
  byId("left").textContent = leftWords(sample.left);
  const link = (name, value, href) => make("a", { class: "figure", href }, make("span", { class: "name" }, name), make("span", { class: "value" }, value));
  refresh(byId("figures"),
    link("pages a second", sample.pages_per_second === null || !isAtWork ? "–" : sample.pages_per_second.toFixed(1), "#rates-card"),
    link("crawled", number(figures.crawled), to("/pages", { state: "processed", ...ofRun() })),
    link("waiting", number(figures.waiting), to("/pages", { state: "queued", ...ofRun() })),
    link("failed", number(figures.failed), to("/pages", { state: "errors", ...ofRun() })),
    link("pages known", number(figures.known), to("/pages", ofRun())),
    link("links", number(figures.links), to("/map", ofRun())),
    link("on the wire", number(figures.in_flight), "#work"),
    size ? link("read", bytes(size), to("/pages", { state: "processed", ...ofRun() })) : "",
  );
  showAlerts(sample);
  showActions(sample, isAtWork, isPaused);
  showStages(sample);
  showWork(sample, isAtWork);
}

function showAlerts({ alerts = [], network }) {
  const place = byId("alerts");
  const state = JSON.stringify([alerts, network.is_waiting && network.findings]);
  if (place.dataset.state === state) return; // a screen reader says them once
  place.dataset.state = state;
  const notice = (name, words, since) => make("div", { class: "notice is-warn", role: "alert" },
    make("p", {}, make("strong", {}, ...shown(name)), ": ", ...shown(words), since ? make("span", { class: "muted" }, ` since ${moment(since)}`) : ""));
  put(place,
    network.is_waiting ? notice("outage", `This machine's own network is out, so no request leaves and no page is blamed. ${network.findings.join("; ")}`, null) : "",
    ...alerts.map((alert) => notice(alert.name, alert.words, alert.since)));
}

const statusWord = (run) => ({ running: "is under way", completed: "is complete", interrupted: run.reason ? `ended at a limit: ${run.reason}` : "was interrupted" }[run.status] || run.status);

function leftWords(left) {
  if (!left || !left.pages) return "";
  const range = left.seconds_most > left.seconds_least ? `${duration(left.seconds_least)} to ${duration(left.seconds_most)}` : `about ${duration(left.seconds_least)}`;
  const limits = Object.entries(left.limits || {}).map(([name, value]) => (name === "seconds" ? `${duration(value)} are over` : name === "bytes" ? `${bytes(value)} more are read` : `${number(value)} more ${name} are visited`));
  return `${counted(left.pages, "page")} in ${counted(left.domains, "domain")} left: ${range}${left.may_find_domains ? ", longer with new domains" : ""}${limits.length ? `; it ends before when ${limits.join(" or ")}` : ""}`;
}

function showActions(sample, isAtWork, isPaused) {
  const place = byId("actions");
  const state = `${me.role} ${isAtWork} ${isPaused}`;
  if (place.dataset.state === state) return;
  place.dataset.state = state;
  const held = document.activeElement?.id;
  const button = (word, what, done, tone = "") => make("button", { type: "button", class: tone, id: `do-${what}`, onclick: () => attempt(async () => {
    await post("/api/control", { action: what });
    tell(done);
  }) }, word);
  put(place, ...(me.role === "admin" ? [
    isPaused ? button("Resume", "resume", "The crawl goes on.", "primary") : isAtWork ? button("Pause", "pause", "Within two seconds no request leaves.") : "",
    isAtWork ? button("Stop", "stop", "The stages finish what is in flight, save and end.", "danger") : "",
    isAtWork ? button("Reload config", "reload", "Each stage reads the config again.") : "",
  ] : []));
  if (held?.startsWith("do-") && place.firstElementChild) (byId(held) || place.firstElementChild).focus();
}

function showStages(sample) {
  byId("stages").hidden = false;
  const tone = (stage) => (stage.is_stuck ? "is-bad" : stage.is_running ? "is-good" : "");
  refresh(byId("stages"), make("h2", {}, "Stages"), sample.stages.length ? table([
    { name: "Stage", cell: (row) => row.name },
    { name: "Health", cell: (row) => [make("span", { class: `tag ${tone(row)}` }, row.is_stuck ? "stuck" : row.is_running ? row.doing || "running" : "not running"),
      make("span", { class: "sub" }, `heartbeat ${ago(row.heartbeat_age_seconds)}`, row.is_running && row.standing_seconds > 10 ? `, no progress for ${duration(row.standing_seconds)}` : "")] },
    { name: "Memory", isNumber: true, cell: (row) => bytes(row.memory_bytes) },
  ], sample.stages, { label: "Stages" }) : make("p", { class: "empty" }, "Nothing is running."));
}

function showWork(sample, isAtWork) {
  const due = sample.next_due;
  const held = sample.stages.filter((stage) => stage.is_running).reduce((sum, stage) => sum + (stage.facts.domains || 0), 0);
  byId("work").hidden = !isAtWork;
  refresh(byId("work"), make("h2", {}, "On the wire now"),
    sample.on_the_wire.length
      ? make("ul", { class: "plain rows" }, sample.on_the_wire.slice(0, LISTED).map((each) => make("li", {},
        make("span", { class: "tag" }, each.method), " ", each.url ? pageLink(each.url, ...shown(each.url, 90)) : domainLink(each.domain), make("span", { class: "muted small" }, ` ${each.seconds.toFixed(1)} s`))))
      : make("p", { class: "empty" }, "No request was under way just now."),
    sample.on_the_wire.length > LISTED ? make("p", { class: "small muted" }, `and ${number(sample.figures.in_flight - LISTED)} more`) : "",
    make("p", { class: "small" }, make("a", { href: "/waiting" }, `${counted(held, "domain")} at work`), due ? [". Next request: ", domainLink(due.domain), due.seconds > 0 ? ` in ${due.seconds.toFixed(1)} s` : " now"] : ""));
}

// -- asked for now and then -----------------------------------------------------------------------------------------

async function update() {
  await Promise.all([showFigures(), showRates(), showWaiting()].map((part) => part.catch((problem) => {
    if (problem.status === 401) throw problem;
  })));
}

async function showFigures() {
  hasMap ||= (await get("/health")).map;
  if (!hasMap) return;
  const found = await get("/api/stats", { newest: true });
  size = found.bytes || null;
  const run = ofRun().run === found.run.id ? { run: found.run.id } : {};
  const list = (id, title, rows, nothing) => {
    byId(id).hidden = false;
    refresh(byId(id), make("h2", {}, title, make("span", { class: "muted small" }, ` run ${found.run.id}`)), rows.length ? bars(rows) : make("p", { class: "empty" }, nothing));
  };
  const sorted = (counts) => Object.entries(counts || {}).filter(([, value]) => value).sort((a, b) => b[1] - a[1]);
  list("states", "Pages by state", sorted(found.states).map(([state, value]) =>
    ({ label: stateWord(state), value, href: to("/pages", { state, ...run }), tone: stateTone(state) })), "No page is known yet.");
  list("errors", "Failures by kind", sorted(found.error_slugs).map(([slug, value]) =>
    ({ label: shown(slug), value, href: to("/pages", { error: slug, ...run }), tone: "is-bad" })), "Nothing has failed.");
  list("codes", "Status codes", sorted(found.status_codes).map(([code, value]) =>
    ({ label: code, value, href: to("/pages", { status: code, ...run }), tone: code >= 400 ? "is-bad" : "" })), "No answer has come in yet.");
  byId("codes").hidden = !Object.keys(found.status_codes || {}).length; // maps of earlier versions have not counted them
}

async function showRates() {
  const { title, lines } = MEASURES[measure];
  const found = await get("/api/stats/timeseries", { seconds: span });
  if (byId("rates").firstElementChild?.dataset.held) return; // somebody reads it
  byId("rates-title").textContent = title;
  if (found.points.length < 2) {
    put(byId("rates"), make("p", { class: "empty" }, found.points.length ? "One point so far; a line needs two." : "Nothing was crawled in this time."));
    return;
  }
  const drawn = lines.map(([name, field, tone]) => ({ name, tone, points: found.points.map((point) => [new Date(point.at).getTime(), point[field]]) }));
  put(byId("rates"), lineChart(drawn.filter((line, place) => !place || line.points.some(([, value]) => value)), {
    label: title, step: found.step * 1000, format: (value) => Number(value).toLocaleString("en", { maximumFractionDigits: 1 }),
  }));
}

async function showWaiting() {
  const found = await get("/api/frontier/waiting", { limit: LISTED });
  const place = byId("waiting");
  const reasons = Object.entries(found.reasons).sort((a, b) => b[1] - a[1]);
  const closed = Object.entries(found.closed).sort((a, b) => b[1] - a[1]);
  place.hidden = false;
  refresh(place, make("h2", {}, "Domains that wait, and why"),
    reasons.length ? bars(reasons.map(([reason, value]) => ({ label: waitWord(reason), value, href: to("/waiting", { reason }), tone: "is-waiting" }))) : make("p", { class: "empty" }, "No domain waits."),
    reasons.length ? waitingTable(found.domains) : "",
    found.total > found.domains.length ? make("p", { class: "small" }, make("a", { href: "/waiting" }, `All ${number(found.total)}`)) : "",
    closed.length ? [make("h3", {}, "Closed for this run"), bars(closed.map(([reason, value]) => ({ label: waitWord(reason), value, href: to("/domains", { closed: "true", reason, ...ofRun() }) })))] : "");
}

function waitingTable(rows) {
  return table([
    { name: "Longest first", cell: (row) => [domainLink(row.domain), make("span", { class: "sub" }, waitWord(row.reason))] },
    { name: "Until", isNumber: true, cell: (row) => until(row.seconds) },
    { name: "Pages", isNumber: true, cell: (row) => make("a", { href: to("/pages", { domain: row.domain, state: "queued", ...ofRun() }) }, number(row.pages)) },
  ], rows, { label: "Domains that wait" });
}
