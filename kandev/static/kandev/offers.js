// "Answer as new message" is offered once: by the form that holds the text, else by the entry of the transcript.

const holds = (article) => article.querySelector("[data-outcome]:not([hidden]) [data-offers-late], [data-mode=late]:not([hidden])");

export function settle() {
  const held = [...document.querySelectorAll("[data-bundle]")].filter(holds).map((article) => article.dataset.bundle);
  document.querySelectorAll("[data-late-button]").forEach((button) => { button.hidden = held.includes(button.dataset.lateButton); });
}
