/* Figures, times and states in words. */

export const number = (value) => (value === null || value === undefined ? "–" : Number(value).toLocaleString("en"));
export const counted = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KB", "MB", "GB", "TB"];
  let size = value;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit && size < 10 ? size.toFixed(1) : Math.round(size).toLocaleString("en")} ${units[unit]}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60 ? `${whole % 60} s` : ""}`.trim();
  if (whole < 172800) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.round(whole / 86400)} days`;
}

/** How long something still lasts; the last seconds with tenths. */
export const until = (seconds) => (seconds === null || seconds === undefined ? "–" : seconds < 10 ? `${seconds.toFixed(1)} s` : duration(seconds));

/** How long ago, in one figure. */
export function ago(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const [, size, unit] = [[60, 1, "s"], [3600, 60, "min"], [172800, 3600, "h"], [Infinity, 86400, "days"]].find(([most]) => seconds < most);
  return `${Math.floor(seconds / size)} ${unit} ago`;
}

/** A moment as people write it, in the reader's own time zone. */
export function moment(text) {
  if (!text) return "–";
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return String(text);
  return at.toLocaleString(undefined, { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
}

export const STATES = {
  processed: "crawled", queued: "waiting", fetching: "being fetched", discovered: "not followed", dead_link: "dead link",
  unreachable: "unreachable", failed: "failed", rate_limited: "rate limited", depth_exceeded: "beyond max depth",
  request_limit_hit: "over budget", content_mismatch: "no HTML", blacklisted: "blacklisted", stubbed: "stub",
};
export const CLASSES = { quality: "quality", discovered: "discovered", stubbed: "stub", blacklisted: "blacklisted" };
const BAD = new Set(["dead_link", "unreachable", "failed", "rate_limited", "content_mismatch"]);
const WAITING = new Set(["queued", "fetching"]);

export const stateWord = (state) => STATES[state] || String(state).replaceAll("_", " ");
export const stateTone = (state) => (BAD.has(state) ? "is-bad" : WAITING.has(state) ? "is-waiting" : state === "processed" ? "is-good" : "");

const WAITS = {
  delay: "pause between requests", "crawl-delay": "Crawl-delay of robots.txt", pause: "pause before a retry", robots: "robots.txt not readable yet",
  breaker: "circuit breaker open", turn: "waits its turn", outage: "our network is out or in doubt", paused: "crawl is paused",
  "rate-limited": "rate limited (429)", "request-limit": "budget used up", cleared: "cleared by a person", "breaker-open": "breaker stayed open",
};
/** Why a domain waits, or was closed, in a few words. */
export const waitWord = (reason) => WAITS[reason] || String(reason).replaceAll("-", " ");
