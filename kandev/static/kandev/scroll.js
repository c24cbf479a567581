// Where the page looks: at an open question, else at the end. It follows what comes in only for somebody who is there
// already and who is not busy with a form.

const NEAR = 160;
const SWAP_MS = 250;
const OUTCOME_MS = 5000;
let following = true;
let swapped = 0; // when the page itself last moved: the scrolling that follows from it is nobody's wish

const root = () => document.scrollingElement;
const question = () => document.querySelector("[data-pending-region] [data-bundle]:not([data-settled], [data-folded])");
const atEnd = () => root().scrollHeight - root().scrollTop - root().clientHeight < NEAR;
const atTopOf = (place) => Math.abs(place.getBoundingClientRect().top - parseFloat(getComputedStyle(place).scrollMarginTop)) < NEAR / 2;
const atQuestion = () => Boolean(question()) && atTopOf(question());
const busy = () => Boolean(document.activeElement.closest?.("[data-bundle]"));

// What became of an answer stays in sight while the transcript above it takes the answer in.
function keepOutcome() {
  const place = document.activeElement.closest?.("[data-outcome]");
  if (place && Date.now() - place.dataset.told < OUTCOME_MS) place.scrollIntoView({ block: "nearest" });
}

function look() {
  keepOutcome();
  if (!following || busy()) return;
  if (question()) question().scrollIntoView({ block: "start" });
  else root().scrollTop = root().scrollHeight;
}

// Earlier rows come in above: what is being read stays where it is.
function holdPlace(event) {
  if (!event.detail.elt?.matches?.("[data-keeps-scroll]")) return;
  const before = root().scrollHeight - root().scrollTop;
  addEventListener("htmx:afterSettle", () => { root().scrollTop = root().scrollHeight - before; }, { once: true });
}

function afterSettle(event) {
  if (event.target.id !== "late") return look();
  const title = event.target.querySelector("h2");
  title?.scrollIntoView({ block: "center" });
  return title?.focus({ preventScroll: true });
}

export function install() {
  if (!document.querySelector(".task-page")) return;
  addEventListener("scroll", () => { if (Date.now() - swapped > SWAP_MS) following = atEnd() || atQuestion(); }, { passive: true });
  document.body.addEventListener("htmx:beforeSwap", () => { swapped = Date.now(); });
  document.body.addEventListener("htmx:beforeSwap", holdPlace);
  document.body.addEventListener("kandev:refreshed", look);
  document.body.addEventListener("htmx:afterSettle", afterSettle);
}
