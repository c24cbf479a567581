// Several questions on a phone: one at a time. The form stays the plain long one; a stylesheet for narrow screens hides
// all but the current question, so that answers, drafts and a page without scripts know nothing of steps.

import { announce } from "./announce.js";
import * as answers from "./answers.js";
import { onFresh } from "./fresh.js";

const { gettext, interpolate } = window;
const narrow = matchMedia("(max-width: 47.99rem)"); // as in the stylesheet

const at = (form) => Number(form.dataset.step);
const applies = (form) => narrow.matches && "step" in form.dataset;

// The question that is seen alone; none where all are.
export const current = (form) => (applies(form) ? answers.questions(form)[at(form)] : null);

function set(form, index) {
  const all = answers.questions(form);
  form.dataset.step = index;
  form.toggleAttribute("data-first-step", index === 0);
  form.toggleAttribute("data-last-step", index === all.length - 1);
  all.forEach((question, number) => question.toggleAttribute("data-current", number === index));
  form.querySelector("[data-step-text]").textContent = interpolate(gettext("%s of %s"), [index + 1, all.length]);
}

// Brings a question into sight that something is to be said about.
export function reveal(form, question) {
  if ("step" in form.dataset) set(form, answers.questions(form).indexOf(question));
}

function go(form, by) {
  const all = answers.questions(form);
  const index = Math.min(Math.max(at(form) + by, 0), all.length - 1);
  set(form, index);
  answers.keepStep(form, index);
  const legend = all[index].querySelector("legend");
  legend.tabIndex = -1;
  legend.focus({ preventScroll: true });
  form.querySelector("[data-step-line]").scrollIntoView({ block: "nearest" });
  announce(interpolate(gettext("Question %s of %s"), [index + 1, all.length]));
}

// Enter in a choice submits a form; before the last step it goes on instead. → whether it did
export function forward(form) {
  if (!applies(form) || "lastStep" in form.dataset || form.dataset.blankAccepted) return false;
  go(form, 1);
  return true;
}

export function install() {
  onFresh("[data-question-form]", (form) => {
    const last = answers.questions(form).length - 1;
    if (last > 0) set(form, Math.min(answers.keptStep(form), last));
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-step-back], [data-step-next]");
    if (button) go(button.form, "stepNext" in button.dataset ? 1 : -1);
  });
  // On a wide screen all are seen; one that becomes narrow shows where somebody is.
  document.addEventListener("focusin", (event) => {
    const question = event.target.closest?.("fieldset[data-question]");
    const form = question?.closest("[data-question-form]");
    if (form && !("current" in question.dataset)) reveal(form, question);
  });
}
