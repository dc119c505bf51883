/*
 * Live figures: one stream a tab. Where a stream cannot be held open, the newest figures are asked for every few seconds.
 *
 *   watch((sample) => …, (isLive) => …) -> stop
 */

import { get } from "/static/api.js";
import { showSignIn } from "/static/shell.js";

const POLL = 4000; // milliseconds

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
    source.addEventListener("signed-out", () => {
      stop();
      showSignIn();
    });
    source.onerror = () => {
      failures += 1;
      onState(false);
      if (failures > 2 || source.readyState === EventSource.CLOSED) {
        source.close();
        source = null;
        poll();
      }
    };
  }

  async function poll() {
    try {
      onSample(await get("/api/live"));
      onState(true);
    } catch (problem) {
      onState(false);
      if (problem.status === 401) {
        showSignIn();
        return;
      }
    }
    timer = window.setTimeout(poll, POLL);
  }

  function stop() {
    source?.close();
    source = null;
    window.clearTimeout(timer);
  }

  open();
  window.addEventListener("pagehide", stop);
  return stop;
}
