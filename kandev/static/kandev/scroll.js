// Where the page looks: at its end when it opens, at an open question before that, and it follows new rows only for
// somebody who is at the end already.

const NEAR = 160;
let following = true;

const root = () => document.scrollingElement;
const atEnd = () => root().scrollHeight - root().scrollTop - root().clientHeight < NEAR;

function toEnd() {
  root().scrollTop = root().scrollHeight;
}

// Earlier rows come in above: what is being read stays where it is.
function holdPlace(event) {
  if (!event.detail.elt?.matches?.("[data-keeps-scroll]")) return;
  const before = root().scrollHeight - root().scrollTop;
  event.target.addEventListener("htmx:afterSettle", () => { root().scrollTop = root().scrollHeight - before; }, { once: true });
}

export function install() {
  if (!document.querySelector(".task-page")) return;
  addEventListener("scroll", () => { following = atEnd(); }, { passive: true });
  document.body.addEventListener("htmx:beforeSwap", holdPlace);
  document.body.addEventListener("kandev:refreshed", () => { if (following) toEnd(); });
  document.body.addEventListener("htmx:afterSettle", (event) => {
    if (event.target.id === "late") event.target.querySelector("h2")?.focus();
    else if (following && !event.detail.elt?.matches?.("[data-keeps-scroll]")) toEnd();
  });
}
