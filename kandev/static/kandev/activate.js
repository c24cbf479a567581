// From a task to the session that matters. The server decides; here only: one activation at a time in each place, an
// older one never wins, a vanished task moves nothing, and a failure opens the task all the same.

import { notice } from "./announce.js";
import { refresh } from "./socket.js";

const { gettext } = window;
const running = new WeakMap(); // place → AbortController; each sheet has its own, so two do not disturb each other

const placeOf = (link) => link.closest("dialog") || document.body;
const usable = (place, abort) => !abort.signal.aborted && place.isConnected && (!place.matches("dialog") || place.open);

function stop(place) {
  running.get(place)?.abort();
  running.delete(place);
}

async function activate(link) {
  const place = placeOf(link);
  stop(place);
  const abort = new AbortController();
  running.set(place, abort);
  const url = await destination(link, abort.signal);
  if (!usable(place, abort)) return;
  running.delete(place);
  if (!url) {
    notice(gettext("This task is gone."), { key: "gone", tone: "bad" });
    refresh("board", "tabs");
    return;
  }
  if (place.matches("dialog")) place.close();
  location.assign(url);
}

// → an address, or "" when the task vanished
async function destination(link, signal) {
  try {
    const response = await fetch(link.href, { headers: { Accept: "application/json" }, credentials: "same-origin", cache: "no-store", signal });
    if (response.status === 404) return "";
    return response.ok ? (await response.json()).url : link.dataset.taskUrl;
  } catch {
    return link.dataset.taskUrl;
  }
}

export function install() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-activate]");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    activate(link);
  });
  document.addEventListener("close", (event) => stop(event.target), true);
  matchMedia("(min-width: 64rem)").addEventListener("change", () => document.querySelectorAll("dialog.from-bottom[open]").forEach((sheet) => sheet.close()));
}
