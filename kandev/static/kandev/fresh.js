// Modules say what they do with an element when it comes into the page: at the start, by htmx, or by the reconciler.

const starters = [];

export function onFresh(selector, start) {
  starters.push([selector, start]);
}

export function startAll(root) {
  for (const [selector, start] of starters) {
    if (root.matches && root.matches(selector)) start(root);
    root.querySelectorAll(selector).forEach(start);
  }
}
