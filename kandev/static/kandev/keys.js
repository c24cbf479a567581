// Hands on a question form: buttons, typing, and the keyboard. Numbers choose, Ctrl/Cmd+Enter submits, Escape only closes.

import * as answers from "./answers.js";
import * as offers from "./offers.js";
import * as question from "./question.js";
import * as steps from "./steps.js";

const { gettext } = window;
const formOf = (target) => target.closest?.("[data-question-form]");

const clicks = {
  "[data-skip]": (form) => question.skip(form),
  "[data-skip-open]": (form) => toggleSkip(form, true),
  "[data-skip-back]": (form) => toggleSkip(form, false),
  "[data-copy-answer]": (form) => question.copy(form),
  "[data-clear]": (form, button) => clear(form, button),
};

function toggleSkip(form, on) {
  form.querySelector("[data-skip-row]").hidden = !on;
  form.querySelector("[data-main-actions]").hidden = on;
  form.querySelector(on ? "[data-reason]" : "[data-skip-open]").focus();
  if (on) form.querySelector("[data-skip-row]").scrollIntoView({ block: "nearest" });
}

function clear(form, button) {
  const inputs = answers.options(button.closest("fieldset"));
  inputs.forEach((input) => { input.checked = false; });
  changed(form);
  inputs[0].focus();
}

function changed(form) {
  delete form.dataset.blankAccepted;
  answers.keep(form);
  question.showClear(form);
}

// Close answers nothing: an open form is folded away, a settled one is put off the page.
export function close(article) {
  if (article.dataset.settled || article.id.startsWith("late-")) {
    const next = document.querySelector("[data-bundle]:not([data-settled]) h2, #composer-text");
    article.remove();
    offers.settle();
    next?.focus({ preventScroll: true });
    return;
  }
  fold(article, !("folded" in article.dataset));
}

function fold(article, on) {
  const button = article.querySelector("[data-close-bundle]");
  if (!button) return;
  article.querySelector("[data-body]").hidden = on;
  article.toggleAttribute("data-folded", on);
  button.setAttribute("aria-label", on ? gettext("Show the question") : gettext("Close (answers nothing)"));
  button.setAttribute("aria-expanded", on ? "false" : "true");
  button.focus();
}

function onClick(event) {
  const closer = event.target.closest("[data-close-bundle]");
  if (closer) return close(closer.closest("[data-bundle]"));
  const form = formOf(event.target);
  const entry = form && Object.entries(clicks).find(([selector]) => event.target.closest(selector));
  return entry ? entry[1](form, event.target.closest(entry[0])) : undefined;
}

function onKey(event) {
  if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
  const form = formOf(event.target);
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && form) {
    event.preventDefault();
    form.querySelector("[data-skip-row]:not([hidden])") ? question.skip(form) : question.submit(form);
  } else if (event.key === "Escape") escape(event);
  else if (event.key === "n" && !event.ctrlKey && !event.metaKey && !event.altKey) next(event);
  else if (/^[1-9]$/.test(event.key) && !event.ctrlKey && !event.metaKey && !event.altKey) choose(event);
}

function escape(event) {
  const article = event.target.closest?.("[data-bundle]");
  const row = article?.querySelector("[data-skip-row]:not([hidden])");
  if (row) toggleSkip(formOf(row), false);
  else if (article && !("folded" in article.dataset)) close(article);
}

const writes = (target) => target.matches?.("textarea, select, input:not([type=radio], [type=checkbox])");

// In the list of everything that waits: on to the next one, after the last to the first.
function next(event) {
  const open = [...document.querySelectorAll(".inbox > :is([data-permission], [data-bundle]:not([data-settled]))")];
  if (!open.length || writes(event.target)) return;
  event.preventDefault();
  const here = document.activeElement.closest?.("[data-permission], [data-bundle]");
  const after = here ? open.find((one) => here.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING) : null;
  const heading = (after || open[0]).querySelector("h2");
  heading.focus({ preventScroll: true });
  heading.scrollIntoView({ block: "center" });
}

function choose(event) {
  if (writes(event.target)) return;
  const form = formOf(event.target) || document.querySelector("[data-bundle]:not([data-settled], [data-folded]) [data-question-form]:not([data-read-only])");
  if (!form) return;
  const here = event.target.closest?.("fieldset[data-question]") || steps.current(form) || answers.unanswered(form)[0] || answers.questions(form)[0];
  const input = answers.options(here)[Number(event.key) - 1];
  if (!input || input.disabled) return;
  event.preventDefault();
  input.focus();
  input.click();
}

export function install() {
  document.addEventListener("click", onClick);
  document.addEventListener("keydown", onKey);
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-question-form]")) return;
    event.preventDefault();
    if (!steps.forward(event.target)) question.submit(event.target);
  });
  document.addEventListener("input", (event) => {
    const form = formOf(event.target);
    if (!form) return;
    if (event.target.dataset.limit) answers.count(event.target);
    changed(form);
  });
}
