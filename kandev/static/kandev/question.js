// The question form: one submission in flight at a time, every failure keeps what was typed, and only a clear
// "not active" turns an answer into a new message, once (R36).

import { ENDED, call, explain, isCode, post } from "./api.js";
import { showError } from "./announce.js";
import * as answers from "./answers.js";
import * as offers from "./offers.js";
import * as outcome from "./outcome.js";
import { onFresh } from "./fresh.js";
import { refresh } from "./socket.js";
import * as steps from "./steps.js";

const { gettext } = window;

export const article = (form) => form.closest("[data-bundle]");
const busy = (form) => form.getAttribute("aria-busy") === "true";

function setBusy(form, on) {
  form.setAttribute("aria-busy", on ? "true" : "false");
  form.querySelectorAll("button, textarea, input").forEach((part) => { part.disabled = on; });
  form.querySelectorAll("[data-busy-text]").forEach((button) => {
    button.dataset.text ||= button.textContent;
    button.textContent = on ? button.dataset.busyText : button.dataset.text;
  });
}

function mark(question, text) {
  const line = question.querySelector("[data-field-error]");
  line.textContent = text;
  line.hidden = !text;
}

function clearMarks(form) {
  answers.questions(form).forEach((question) => mark(question, ""));
  showError(form, "");
}

// Blank entries are allowed, but never by accident: the second Submit says so.
function ready(form) {
  clearMarks(form);
  const long = [...form.querySelectorAll("[data-custom]")].find((field) => !answers.count(field));
  if (long) {
    steps.reveal(form, long.closest("fieldset"));
    long.focus();
    return false;
  }
  const blank = answers.unanswered(form);
  const all = blank.length && !answers.holdsSomething(form);
  if (all) showError(form, gettext("Choose an option or write something. To say nothing, use Skip."), { focus: true });
  if (all || !blank.length || form.dataset.blankAccepted) return !all;
  form.dataset.blankAccepted = "1";
  blank.forEach((question) => mark(question, gettext("Not answered yet. Submit once more to leave it blank.")));
  steps.reveal(form, blank[0]);
  blank[0].scrollIntoView({ block: "nearest" });
  showError(form, gettext("Some questions are not answered yet. Submit once more to leave them blank."), { focus: true });
  return false;
}

export async function submit(form) {
  if (busy(form) || !ready(form)) return;
  const given = answers.gather(form);
  answers.keep(form);
  const messageId = answers.messageId(form);
  setBusy(form, true);
  const late = form.dataset.mode === "late";
  const reply = await post(late ? form.dataset.late : form.dataset.respond, late
    ? { answers: given, client_message_id: messageId }
    : { answers: given, rejected: false, reject_reason: "" });
  if (late) afterLate(form, reply);
  else if (isCode(reply, 409, "not_active")) await goOnAsMessage(form, given, messageId);
  else afterRespond(form, reply, given);
  setBusy(form, false);
}

async function goOnAsMessage(form, given, messageId) {
  becomeLate(form);
  afterLate(form, await post(form.dataset.late, { answers: given, client_message_id: messageId }));
}

export async function skip(form) {
  const reason = form.querySelector("[data-reason]");
  if (busy(form)) return;
  if (!answers.count(reason)) {
    reason.focus();
    return;
  }
  clearMarks(form);
  answers.keep(form);
  setBusy(form, true);
  const reply = await post(form.dataset.respond, { answers: [], rejected: true, reject_reason: reason.value });
  if (isCode(reply, 409, "not_active")) settled(form, { title: gettext("This question was no longer open. Nothing was sent."), tone: "plain" });
  else afterRespond(form, reply, null);
  setBusy(form, false);
}

// The draft goes only when its text has arrived somewhere or nobody wants it any more.
function settled(form, what, { keep = false } = {}) {
  if (!keep) answers.forget(form);
  outcome.show(form, what);
  refresh("transcript", "pending", "queue", "tabs", "inbox");
}

const same = (response, given) => given && JSON.stringify((response.answers || []).map(plain)) === JSON.stringify(given.map(plain));
const plain = (answer) => [answer.question_id, [...answer.selected_options].sort(), answer.custom_text.trim()];

function afterRespond(form, reply, given) {
  if (reply.kind === "reply" && reply.status === 200) return reply.body.claimed ? won(form, reply.body) : lost(form, reply.body, given);
  if (reply.kind === "reply" && reply.status === 500 && reply.body.retryable === false) return unsure(form, reply, given);
  return failed(form, reply);
}

function won(form, body) {
  settled(form, { title: body.status === "rejected" ? gettext("Skipped. The agent is told.") : gettext("Your answer reached the agent.") });
}

// Somebody was first. After an unclear try that somebody may be this page itself.
export function lost(form, body, given) {
  const mine = same(body.response || {}, given);
  const title = mine ? gettext("Your answer had already arrived.")
    : body.status === "rejected" ? gettext("Somebody else skipped this question first.") : gettext("Somebody else answered first:");
  const detail = { pending: gettext("It is being handed over to the agent."), undelivered: gettext("It never reached the agent.") }[body.delivery] || "";
  const actions = body.delivery === "undelivered" ? [lateAction(form)] : [];
  if (!mine && given && given.length) actions.push(copyAction(form));
  settled(form, { title, detail, tone: "plain", answers: (body.response || {}).answers || [], actions }, { keep: !mine });
}

const lateAction = (form) => ({ label: gettext("Answer as new message"), run: () => reopenLate(form), late: true });
const copyAction = (form) => ({ label: gettext("Copy my text"), run: () => copy(form) });

function unsure(form, reply, given) {
  const detail = gettext("Do not answer again: it cannot be delivered twice, and what became of it is being found out.");
  const title = gettext("Your answer is stored, but it is not certain yet that the agent has it.");
  settled(form, { title, detail, tone: "warn", answers: given || [] }, { keep: true });
}

function failed(form, reply) {
  if (reply.kind === "reply" && reply.status === 400) markFields(form, reply.body.fields || {});
  showError(form, explain(reply), { focus: true });
  form.querySelector("[data-submit]").dataset.text = gettext("Try again");
}

function markFields(form, fields) {
  const all = answers.questions(form);
  Object.entries(fields).forEach(([name, sentences]) => {
    const index = Number((name.match(/answers\D*(\d+)/) || [])[1]);
    if (all[index]) mark(all[index], [sentences].flat().join(" "));
  });
  const first = all.find((question) => !question.querySelector("[data-field-error]").hidden);
  if (first) steps.reveal(form, first);
}

// ---- the same form, sent as an ordinary message

function becomeLate(form) {
  form.dataset.mode = "late";
  offers.settle();
  form.querySelector("[data-submit]").dataset.text = gettext("Send as new message");
  form.querySelectorAll("[data-skip-open], [data-skip-row]").forEach((part) => { part.hidden = true; });
  const note = article(form).querySelector(".note");
  if (!note) return;
  note.textContent = gettext("The agent no longer waits for this. Your answer goes to the same session as an ordinary message that quotes the question.");
  note.classList.remove("live");
}

export function reopenLate(form) {
  becomeLate(form);
  setBusy(form, false);
  answers.questions(form).forEach((question) => { question.disabled = false; });
  outcome.hide(form);
  form.querySelector("input:not([type=hidden]), textarea").focus();
}

function afterLate(form, reply) {
  if (reply.kind === "reply" && (reply.status === 201 || reply.status === 200)) return sentLate(form, reply.body);
  if (isCode(reply, 409, "idempotency_conflict")) {
    answers.messageId(form, { renew: true });
    return showError(form, gettext("An earlier version of this text has been sent already. Send again to send this one too."), { focus: true });
  }
  if (isCode(reply, 409, "still_active")) form.dataset.mode = "respond";
  form.querySelector("[data-copy-answer]").hidden = false;
  return failed(form, isRefusal(reply) ? { ...reply, body: { error: refusal(reply) } } : reply);
}

const isRefusal = (reply) => reply.kind === "reply" && reply.status === 409;

function refusal(reply) {
  const words = {
    still_active: gettext("The question is open again. Try again to answer it directly."),
    already_answered: gettext("Somebody has answered it meanwhile. Nothing was sent; your text is kept."),
    closed: gettext("It was skipped or withdrawn. Nothing was sent; your text is kept."),
    session_unavailable: gettext("This session has ended, so nothing can reach it. Your text is kept: copy it if you need it elsewhere."),
  };
  return words[reply.body.code] || reply.body.error || gettext("It could not be sent. Your text is kept.");
}

function sentLate(form, body) {
  const queued = body.admission === "queued";
  settled(form, { title: queued ? gettext("Queued as a new message: it goes out when the agent is free.") : gettext("Sent to the agent as a new message.") });
}

export async function copy(form) {
  const text = answers.asText(form);
  try {
    await navigator.clipboard.writeText(text);
    showError(form, gettext("Copied."));
  } catch {
    showError(form, text);
  }
}

// ---- what happens elsewhere while the form is open

// The server no longer lists it as open. A half-filled form stays until it is known why, and its text beyond that.
export async function gone(place) {
  const form = place.querySelector("[data-question-form]");
  if (place.dataset.settled || busy(form) || form.dataset.mode === "late") return;
  const reply = await call("GET", `/api/v1/clarification/${encodeURIComponent(form.dataset.pendingId)}`);
  if (!("gone" in place.dataset) || place.dataset.settled || busy(form)) return;
  if (reply.kind === "reply" && reply.status === 404) return outcome.show(form, { title: gettext("This question was removed."), tone: "plain", actions: [copyAction(form)] });
  if (reply.kind !== "reply" || reply.status !== 200) return;
  elsewhere(form, reply.body);
}

async function elsewhere(form, bundle) {
  const statuses = bundle.questions.map((question) => question.status);
  const given = bundle.questions.map((question) => question.response).filter(Boolean);
  const kept = answers.holdsSomething(form) ? [copyAction(form)] : [];
  const say = (title, rest = {}) => outcome.show(form, { title, tone: "plain", actions: kept, ...rest });
  if (bundle.state === "delivery_claimed") say(gettext("Somebody else's answer is being handed over…"), { answers: given });
  else if (statuses.includes("answered")) say(gettext("Answered elsewhere:"), { answers: given });
  else if (statuses.includes("rejected")) say(gettext("Skipped elsewhere."));
  else if (statuses.includes("cancelled")) say(gettext("The agent has withdrawn this question."));
  else if (await sessionEnded(bundle)) {
    say(gettext("This session has ended, so nothing can reach it. Your text is kept: copy it if you need it elsewhere."), { actions: kept });
  } else say(gettext("The conversation went on without an answer; the agent no longer waits for one."), { actions: [lateAction(form), ...kept] });
}

async function sessionEnded(bundle) {
  const reply = await call("GET", `/api/v1/task-sessions/${encodeURIComponent(bundle.session_id)}`);
  return reply.kind === "reply" && reply.status === 200 && ENDED.includes(reply.body.state);
}

// An answer that could not be handed over gives the question back.
export function back(place) {
  const form = place.querySelector("[data-question-form]");
  delete place.dataset.settled;
  if (form.dataset.mode === "respond" && !busy(form)) outcome.hide(form);
}

// The agent may stop waiting, or wait again, while somebody writes: only the line that says so changes.
function still(place, fresh) {
  const [note, said] = [place, fresh].map((one) => one.querySelector(".note"));
  if (!note || !said || place.querySelector("[data-mode=late]")) return;
  note.textContent = said.textContent;
  note.className = said.className;
}

export function install() {
  answers.flushWhenLeaving();
  onFresh("[data-question-form]", (form) => {
    answers.restore(form);
    form.querySelectorAll("[data-limit]").forEach(answers.count);
    showClear(form);
    offers.settle();
  });
  onFresh("[data-late-button]", offers.settle);
  document.addEventListener("kandev:gone", (event) => { if (event.target.matches("[data-bundle]")) gone(event.target); });
  document.addEventListener("kandev:still", (event) => { if (event.target.matches("[data-bundle]")) still(event.target, event.detail); });
  document.addEventListener("kandev:back", (event) => { if (event.target.matches("[data-bundle]")) back(event.target); });
}

export function showClear(form) {
  answers.questions(form).forEach((question) => {
    const button = question.querySelector("[data-clear]");
    if (button) button.hidden = !answers.options(question).some((input) => input.checked);
  });
}
