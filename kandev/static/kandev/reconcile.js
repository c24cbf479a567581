// A refreshed fragment changes only what differs, so that focus, typed text, open details and the scroll stay.
// Children are matched by id and compared by data-version. data-keep-shell: go on inside. data-keep: never replaced or
// removed here; its owner hears "kandev:gone", "kandev:back" and, with the fresh element, "kandev:still" instead.

import { startAll } from "./fresh.js";

export function install() {
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    const { target, xhr, serverResponse } = event.detail;
    if (!target.hasAttribute("data-keyed") || xhr.status !== 200) return;
    event.detail.shouldSwap = false;
    const fresh = parse(serverResponse, target);
    if (moved(target, fresh)) return reloadAround(target);
    reconcile(target, fresh);
    target.dispatchEvent(new CustomEvent("kandev:refreshed", { bubbles: true }));
  });
  document.body.addEventListener("htmx:load", (event) => startAll(event.detail.elt));
}

function parse(html, target) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return (target.hasAttribute("hx-select") && template.content.getElementById(target.id)) || template.content;
}

// The server answered with another window, because the old one had become too long.
const moved = (target, fresh) => Boolean(target.dataset.first && fresh.dataset && fresh.dataset.first !== target.dataset.first);

function reloadAround(target) {
  const around = target.parentElement.closest("[hx-get]");
  window.htmx.ajax("GET", around.getAttribute("hx-get"), { target: around, swap: "innerHTML" });
}

export function reconcile(current, fresh) {
  const old = new Map([...current.children].filter((child) => child.id).map((child) => [child.id, child]));
  const wanted = new Set([...fresh.children].map((child) => child.id).filter(Boolean));
  [...current.children].filter((child) => !wanted.has(child.id)).forEach(leave);
  let place = current.firstElementChild;
  for (const next of [...fresh.children]) {
    while (place && !wanted.has(place.id)) place = place.nextElementSibling;
    const mine = next.id ? old.get(next.id) : null;
    const settled = mine ? merge(mine, next) : adopt(next);
    if (settled === place || (mine && mine === place)) place = settled.nextElementSibling;
    else current.insertBefore(settled, place);
    if (!mine) start(settled);
  }
  copyAttributes(current, fresh);
}

function leave(child) {
  if (!child.hasAttribute("data-keep")) return child.remove();
  child.dataset.gone = "";
  child.dispatchEvent(new CustomEvent("kandev:gone", { bubbles: true }));
}

function merge(mine, next) {
  if (next.hasAttribute("data-keep")) {
    if ("gone" in mine.dataset) {
      delete mine.dataset.gone;
      mine.dispatchEvent(new CustomEvent("kandev:back", { bubbles: true }));
    }
    mine.dispatchEvent(new CustomEvent("kandev:still", { bubbles: true, detail: next }));
    return mine;
  }
  if (next.hasAttribute("data-keep-shell")) {
    reconcile(mine, next);
    return mine;
  }
  if (mine.dataset.version && mine.dataset.version === next.dataset.version) return mine;
  const made = adopt(next);
  const focused = positionOfFocus(mine);
  mine.replaceWith(made);
  start(made);
  if (focused >= 0) focusable(made)[focused]?.focus({ preventScroll: true });
  return made;
}

const adopt = (next) => document.importNode(next, true);
const focusable = (root) => [...root.querySelectorAll("a[href], button, input, select, textarea, summary")];
const positionOfFocus = (root) => (root.contains(document.activeElement) ? focusable(root).indexOf(document.activeElement) : -1);

function start(made) {
  window.htmx.process(made);
  startAll(made);
}

function copyAttributes(current, fresh) {
  if (!fresh.attributes) return;
  for (const { name, value } of [...fresh.attributes]) {
    if (name.startsWith("data-") && current.getAttribute(name) !== value) current.setAttribute(name, value);
  }
}
