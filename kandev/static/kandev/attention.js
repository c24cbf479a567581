// For somebody who looks elsewhere: a dot on the page's icon, and for those who asked for it one browser notification a
// question, taken back as soon as the question no longer waits.

import { announce, notice } from "./announce.js";
import { onFresh } from "./fresh.js";

const { gettext } = window;
const WANTED = "kandev:notify";
const TOLD = "kandev:told";
const KEPT = 500;
const shown = new Map(); // name → Notification

const link = () => document.querySelector("link[rel=icon]");
const able = () => "Notification" in window;
const wanted = () => able() && Notification.permission === "granted" && read(WANTED, false);

function read(key, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

function write(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Storage is full or forbidden: at worst a question is announced twice.
  }
}

// `names` is everything that waits now.
export function show(names) {
  dot(names.length > 0);
  [...shown.keys()].filter((name) => !names.includes(name)).forEach(takeBack);
  const told = read(TOLD, []);
  const fresh = names.filter((name) => !told.includes(name));
  if (!fresh.length) return;
  write(TOLD, [...told, ...fresh].slice(-KEPT));
  if (wanted() && !document.hasFocus()) fresh.forEach(tell);
}

function dot(on) {
  const icon = link();
  icon.dataset.plain ||= icon.getAttribute("href");
  icon.href = on ? icon.dataset.dotted : icon.dataset.plain;
}

// The text of a question stays on the page: a notification may be read by anybody who sees the screen.
function tell(name) {
  try {
    const made = new Notification(gettext("An agent needs you"), { body: gettext("Something waits for your answer."), tag: name, icon: link().href });
    made.addEventListener("click", () => {
      window.focus();
      location.assign("/questions");
    });
    shown.set(name, made);
  } catch {
    // Some phones offer the permission, but no notification of a page.
  }
}

function takeBack(name) {
  shown.get(name).close();
  shown.delete(name);
}

async function toggle(button) {
  const on = button.getAttribute("aria-pressed") !== "true";
  if (on && await Notification.requestPermission() !== "granted") {
    notice(gettext("This browser does not allow notifications of this page."), { key: "notify" });
    return;
  }
  write(WANTED, on);
  button.setAttribute("aria-pressed", String(on));
  announce(on ? gettext("You will be notified.") : gettext("You will not be notified."));
}

export function install() {
  onFresh("[data-notify]", (button) => {
    button.hidden = !able();
    button.setAttribute("aria-pressed", String(Boolean(wanted())));
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-notify]");
    if (button) toggle(button);
  });
}
