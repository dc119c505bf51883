/*
 * What every page shares: who is signed in, the loading, error and signed-out states, and a line for news.
 *
 *   start(async (main) => { … main.replaceChildren(…) });
 */

import { ApiProblem, get, post } from "/static/api.js";
import { make, ripple } from "/static/dom.js";

const main = document.getElementById("main");

/** Run a page: it gets `main` and the person who is signed in. What it throws is shown. */
export async function start(page) {
  markCurrent();
  try {
    const me = await get("/api/auth/me");
    showWho(me);
    if (me.role === "anonymous") {
      showSignIn();
      return;
    }
    await shownAtLast(page, me);
  } catch (problem) {
    showProblem(problem);
  }
  document.body.dataset.ready = "true";
}

/** Some answers are worked out when they are first asked for: the page says so and tries again by itself. */
async function shownAtLast(page, me) {
  for (;;) {
    try {
      await page(main, me);
      return;
    } catch (problem) {
      if (!(problem instanceof ApiProblem) || problem.status !== 503 || !problem.retryAfter) throw problem;
      main.replaceChildren(comingSoon(problem));
      await new Promise((resolve) => { window.setTimeout(resolve, problem.retryAfter * 1000); });
    }
  }
}

export function comingSoon(problem) {
  const words = make("div", { class: "blank is-loading", role: "status" }, ripple(), make("h1", {}, "One moment …"), make("p", {}, `${problem.message}. This page goes on by itself.`));
  return words;
}

function markCurrent() {
  const here = location.pathname;
  const home = { "/page": "/pages", "/domain": "/domains", "/diff": "/runs", "/run": "/runs", "/referrers": "/pages", "/waiting": "/" }[here] || here;
  for (const link of document.querySelectorAll(".bar nav a")) {
    if (link.getAttribute("href") === home) link.setAttribute("aria-current", "page");
  }
}

function showWho(me) {
  const who = document.getElementById("who");
  if (me.role === "anonymous") {
    who.replaceChildren();
    return;
  }
  const leave = make("button", { class: "plain", type: "button", onclick: async () => {
    await post("/api/auth/logout", {});
    location.assign("/");
  } }, "Sign out");
  who.replaceChildren(make("span", { title: `role: ${me.role}` }, me.name || "owner"), leave);
}

export function blank(title, ...children) {
  return make("div", { class: "blank" }, ripple(), make("h1", {}, title), ...children);
}

/** The signed-out state: a form for accounts, and where the single-use link comes from. */
export function showSignIn() {
  const isOldLink = location.pathname === "/enter";
  const problem = make("p", { class: "notice is-bad", role: "alert", hidden: true });
  const form = make("form", { class: "sign-in card", onsubmit: async (event) => {
    event.preventDefault();
    const given = new FormData(form);
    try {
      await post("/api/auth/login", { name: given.get("name"), password: given.get("password") });
      if (isOldLink) location.assign("/");
      else location.reload();
    } catch (failure) {
      problem.textContent = failure.message;
      problem.hidden = false;
    }
  } },
  problem,
  make("label", { class: "field" }, "Name", make("input", { name: "name", autocomplete: "username", required: true, autocapitalize: "none", spellcheck: "false" })),
  make("label", { class: "field" }, "Password", make("input", { name: "password", type: "password", autocomplete: "current-password", required: true })),
  make("div", {}, make("button", { class: "primary", type: "submit" }, "Sign in")));
  const help = make("p", {}, isOldLink ? "This link was used already, or is too old. " : "", "At this machine, open the link that ", make("code", {}, "sumi-ripple serve"),
    " printed, once; for a new one: ", make("code", {}, "sumi-ripple user link"), ".");
  main.replaceChildren(blank("You are signed out", help, form));
  document.body.classList.remove("is-map");
  document.body.dataset.ready = "true";
}

export function showProblem(problem) {
  if (problem instanceof ApiProblem && problem.status === 401) {
    showSignIn();
    return;
  }
  if (!(problem instanceof ApiProblem)) console.error(problem);
  document.body.classList.remove("is-map");
  if (problem instanceof ApiProblem && problem.slug === "no-map") {
    main.replaceChildren(blank("Nothing has been crawled yet",
      make("p", {}, "Start a crawl with ", make("code", {}, "sumi-ripple crawl my.toml"), " or ", make("code", {}, "make crawl"),
        "; this page fills as pages come in.")));
    return;
  }
  const words = problem instanceof ApiProblem ? problem.message : "The page cannot be shown. The browser's console says more.";
  main.replaceChildren(blank("This did not work", make("p", { role: "alert" }, words),
    make("p", {}, make("button", { type: "button", onclick: () => location.reload() }, "Try again"))));
  document.body.dataset.ready = "true";
}

/** One line of news at the top of the page; read out by screen readers. `tone`: is-good, is-warn, is-bad. */
export function tell(text, tone = "is-good", ...more) {
  const place = document.getElementById("news");
  place.replaceChildren(make("div", { class: `notice ${tone}` }, make("p", {}, text, ...more)));
  place.scrollIntoView({ block: "nearest" });
}

/** Say what goes wrong with an action in the news line. */
export async function attempt(action) {
  try {
    return await action();
  } catch (problem) {
    if (problem instanceof ApiProblem && problem.status === 401) showSignIn();
    else tell(problem.message, "is-bad");
    return undefined;
  }
}
