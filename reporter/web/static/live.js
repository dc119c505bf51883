/*
 * Live figures: one stream a tab, and none while nobody looks at the tab. Where a stream cannot be held open, the newest
 * figures are asked for every few seconds, and the stream is tried again now and then.
 *
 *   watch((sample) => …, (isLive) => …) -> stop
 */

import { get } from "/static/api.js";
import { showSignIn } from "/static/shell.js";

const POLL = 4000; // milliseconds
const POLLS = 15; // before the stream is tried again

export function watch(onSample, onState = () => {}) {
  let source = null;
  let timer = 0;
  let failures = 0;

  function open() {
    source = new EventSource("/api/stream");
    source.addEventListener("live", (event) => {
      failures = 0;
      onState(true);
      onSample(JSON.parse(event.data));
    });
    source.addEventListener("signed-out", end);
    source.onerror = () => {
      failures += 1;
      onState(false);
      if (failures > 2 || source.readyState === EventSource.CLOSED) {
        close();
        poll(POLLS);
      }
    };
  }

  async function poll(left) {
    try {
      onSample(await get("/api/live"));
      onState(true);
    } catch (problem) {
      onState(false);
      if (problem.status === 401) {
        end();
        return;
      }
    }
    if (!document.hidden) timer = window.setTimeout(() => (left ? poll(left - 1) : open()), POLL);
  }

  function close() {
    source?.close();
    source = null;
    window.clearTimeout(timer);
    timer = 0;
  }

  function look() {
    close();
    failures = 0;
    if (!document.hidden) open();
  }

  function stop() {
    close();
    document.removeEventListener("visibilitychange", look);
  }

  function end() {
    stop();
    showSignIn();
  }

  open();
  document.addEventListener("visibilitychange", look);
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", (event) => event.persisted && look());
  return stop;
}
