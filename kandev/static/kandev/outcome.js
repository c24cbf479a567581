// What became of a question, in the place of its form.

import { announce } from "./announce.js";
import { labelsOf, questions } from "./answers.js";
import * as offers from "./offers.js";

const { gettext } = window;

function element(name, text, className = "") {
  return Object.assign(document.createElement(name), { textContent: text, className, dir: "auto" });
}

// Somebody's answers beside the questions; `answers` as in a response. Everything is text, nothing is markup.
function answersOf(form, answers) {
  return questions(form).flatMap((question) => {
    const answer = answers.find((one) => one.question_id === question.dataset.question);
    if (!answer) return [];
    const box = element("div", "", "given");
    box.append(element("p", question.querySelector("[data-prompt]").textContent, "asked own-lines"));
    labelsOf(question, answer.selected_options).forEach((label) => box.append(element("p", label, "chosen")));
    if (answer.custom_text) box.append(element("blockquote", answer.custom_text, "own-lines"));
    if (box.childElementCount === 1) box.append(element("p", gettext("Left blank"), "soft"));
    return [box];
  });
}

export function show(form, { title, detail = "", tone = "good", answers = [], actions = [] }) {
  const article = form.closest("[data-bundle]");
  const place = article.querySelector("[data-outcome]");
  const buttons = actions.map(({ label, run, late = false }) => {
    const button = Object.assign(element("button", label), { type: "button" });
    button.toggleAttribute("data-offers-late", late);
    button.addEventListener("click", run);
    return button;
  });
  const row = element("div", "", "actions");
  row.append(...buttons);
  place.replaceChildren(element("p", title, "outcome-title"), ...answersOf(form, answers), ...(detail ? [element("p", detail, "soft")] : []), ...(buttons.length ? [row] : []));
  place.dataset.tone = tone;
  place.hidden = false;
  form.hidden = true;
  article.dataset.settled = "1";
  article.querySelectorAll(".note, .context").forEach((part) => { part.hidden = true; });
  offers.settle();
  const had = article.contains(document.activeElement) || document.activeElement === document.body;
  announce(title);
  if (had) {
    place.dataset.told = Date.now();
    place.focus({ preventScroll: true });
    place.scrollIntoView({ block: "center" });
  }
}

export function hide(form) {
  const article = form.closest("[data-bundle]");
  article.querySelector("[data-outcome]").hidden = true;
  form.hidden = false;
  delete article.dataset.settled;
  article.querySelectorAll(".note, .context").forEach((part) => { part.hidden = false; });
  offers.settle();
}
