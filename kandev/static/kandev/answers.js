// Reading and restoring what a question form holds. Lengths are counted in code points, as the server counts them.

import * as drafts from "./drafts.js";
import * as sync from "./sync.js";
import { newId } from "./api.js";

const { gettext, interpolate } = window;
const BLANK = /^[\s\u200b-\u200d\u2060\ufeff]*$/u;

export function codePoints(text) {
  let number = 0;
  for (const _ of text) number += 1;
  return number;
}

export const isBlank = (text) => BLANK.test(text);
export const questions = (form) => [...form.querySelectorAll("fieldset[data-question]")];
export const options = (question) => [...question.querySelectorAll(".options input")];
export const custom = (question) => question.querySelector("[data-custom]");
const counts = (form, question) => form.dataset.mode === "late" || question.dataset.open === "1";

// One entry for every question, also for those that are settled already: theirs is empty.
export function gather(form) {
  return questions(form).map((question) => ({
    question_id: question.dataset.question,
    selected_options: counts(form, question) ? options(question).filter((input) => input.checked).map((input) => input.value) : [],
    custom_text: counts(form, question) ? custom(question).value : "",
  }));
}

export const isEmpty = (answer) => !answer.selected_options.length && isBlank(answer.custom_text);
export const holdsSomething = (form) => gather(form).some((answer) => !isEmpty(answer));

export function unanswered(form) {
  const answers = gather(form);
  return questions(form).filter((question, index) => counts(form, question) && isEmpty(answers[index]));
}

export function count(field) {
  const limit = Number(field.dataset.limit);
  const number = codePoints(field.value);
  const line = document.getElementById(field.getAttribute("aria-describedby"));
  const over = number > limit;
  line.textContent = over
    ? interpolate(gettext("%s of %s characters: too long"), [number, limit])
    : number ? interpolate(gettext("%s of %s characters"), [number, limit]) : "";
  line.dataset.over = over ? "1" : "0";
  field.setAttribute("aria-invalid", over ? "true" : "false");
  return !over;
}

const key = (form) => `question-${form.dataset.pendingId}`;

const reasonOf = (form) => form.querySelector("[data-reason]")?.value || "";

export function keep(form) {
  drafts.save(key(form), { answers: gather(form), reason: reasonOf(form) });
  sync.schedule(form, key(form), values);
}

export function forget(form) {
  drafts.drop(key(form));
  sync.forget(form);
}

// Which of several questions is seen, on a phone.
export const keepStep = (form, index) => drafts.save(key(form), { step: index });
export const keptStep = (form) => Number(drafts.load(key(form)).step) || 0;

// {question id: JSON of [selected, text]}, the reason of a Skip under "".
function values(form) {
  const pairs = gather(form).map((answer) => [answer.question_id, JSON.stringify([answer.selected_options, answer.custom_text])]);
  return Object.fromEntries([...pairs, ["", JSON.stringify([[], reasonOf(form)])]]);
}

function stored(draft) {
  const pairs = (draft.answers || []).map((answer) => [answer.question_id, JSON.stringify([answer.selected_options, answer.custom_text])]);
  return Object.fromEntries([...pairs, ...(draft.answers ? [["", JSON.stringify([[], draft.reason || ""])]] : [])]);
}

export const flushWhenLeaving = () => sync.flushWhenLeaving(key, values);

// The identity that a message made of this form will have: made before the first try, the same after a reload.
export function messageId(form, { renew = false } = {}) {
  const stored = drafts.load(key(form)).clientMessageId;
  if (stored && !renew) return stored;
  const made = newId();
  drafts.save(key(form), { clientMessageId: made });
  form.dataset.clientMessageId = made;
  return made;
}

export function restore(form) {
  const found = sync.merge(form, key(form), stored(drafts.load(key(form))));
  for (const question of questions(form)) {
    if (!counts(form, question) || !(question.dataset.question in found)) continue;
    const [selected, text] = JSON.parse(found[question.dataset.question]);
    options(question).forEach((input) => { input.checked = selected.includes(input.value); });
    custom(question).value = text;
  }
  const reason = form.querySelector("[data-reason]");
  if (reason && "" in found) [, reason.value] = JSON.parse(found[""]);
  if (Object.keys(found).length) keep(form);
}

// The answer as plain text, for copying it elsewhere.
export function asText(form) {
  return questions(form).map((question) => {
    const labels = options(question).filter((input) => input.checked).map((input) => `- ${labelOf(input)}`);
    return [question.querySelector("[data-prompt]").textContent, ...labels, custom(question).value].filter(Boolean).join("\n");
  }).join("\n\n");
}

export const labelOf = (input) => input.closest(".option").querySelector("[data-label]").textContent;
export const labelsOf = (question, ids) => options(question).filter((input) => ids.includes(input.value)).map(labelOf);
