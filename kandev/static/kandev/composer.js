// Messages to the agent. The identity is made before the first try and kept while the text is the same.

import { ENDED, explain, isCode, newId, post } from "./api.js";
import { announce, showError } from "./announce.js";
import * as drafts from "./drafts.js";
import { onFresh } from "./fresh.js";
import { refresh } from "./socket.js";

const { gettext } = window;

const field = (form) => form.querySelector("textarea");

function grow(area) {
  area.rows = Math.min(10, Math.max(1, area.value.split("\n").length));
}

function identity(form, content) {
  const draft = drafts.load(form.dataset.draft);
  if (draft.clientMessageId && draft.tried === content) return draft.clientMessageId;
  const made = newId();
  drafts.save(form.dataset.draft, { content, tried: content, clientMessageId: made });
  return made;
}

async function send(form) {
  const area = field(form);
  const content = area.value;
  if (!content.trim() || form.getAttribute("aria-busy") === "true") return;
  const id = identity(form, content);
  lock(form, true);
  const reply = await post(form.dataset.composer, { content, client_message_id: id });
  lock(form, false);
  if (reply.kind === "reply" && (reply.status === 201 || reply.status === 200)) sent(form, reply.body.admission);
  else refused(form, reply);
}

// The session ended while the page was open. What is typed stays for copying; an empty form makes room for the words.
function ended() {
  const form = document.querySelector("[data-composer]");
  if (!form) return;
  if (!field(form).value.trim()) {
    const region = form.closest("[hx-get]");
    window.htmx.ajax("GET", region.getAttribute("hx-get"), { target: region, swap: "innerHTML" });
    return;
  }
  field(form).readOnly = true;
  form.querySelector("[data-send]").hidden = true;
  showError(form, gettext("This session has ended, so nothing can reach it. Your text is kept: copy it if you need it elsewhere."));
}

function lock(form, on) {
  form.setAttribute("aria-busy", on ? "true" : "false");
  field(form).readOnly = on;
  form.querySelector("[data-send]").disabled = on;
  say(form, on ? gettext("Sending…") : "");
}

function say(form, text) {
  form.querySelector("[data-composer-state]").textContent = text;
}

function sent(form, admission) {
  const text = admission === "queued" ? gettext("Queued: it goes out when the agent is free.") : gettext("Sent.");
  drafts.drop(form.dataset.draft);
  field(form).value = "";
  grow(field(form));
  showError(form, "");
  say(form, text);
  announce(text);
  form.closest(".dock")?.removeAttribute("data-wanted");
  field(form).focus();
  refresh("transcript", "queue", "tabs");
}

function refused(form, reply) {
  const ended = isCode(reply, 409, "session_unavailable");
  showError(form, ended ? gettext("This session has ended and takes no more messages. Your text is kept: copy it if you need it elsewhere.") : explain(reply));
  say(form, ended ? "" : gettext("Not sent. Send again to retry."));
}

// Beside an open question the composer steps back, except for somebody who writes in it.
function want(form) {
  form.closest(".dock")?.setAttribute("data-wanted", "");
}

// A text from elsewhere comes before what is being written.
export function fill(text) {
  const form = document.querySelector("[data-composer]");
  if (!form) return;
  const area = field(form);
  area.value = [text, area.value].filter(Boolean).join("\n\n");
  drafts.save(form.dataset.draft, { content: area.value });
  grow(area);
  want(form);
  area.focus();
}

function showComposer(button) {
  const form = button.closest(".dock").querySelector("[data-composer]");
  if (!form) return;
  want(form);
  field(form).focus();
}

export function install() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-show-composer]");
    if (button) showComposer(button);
  });
  onFresh("#session-state", (line) => { if (ENDED.includes(line.dataset.state)) ended(); });
  onFresh("[data-composer]", (form) => {
    const draft = drafts.load(form.dataset.draft);
    field(form).value = draft.content || "";
    grow(field(form));
    if (draft.content) want(form);
    if (draft.trouble) showError(form, draft.trouble);
  });
  document.addEventListener("input", (event) => {
    const form = event.target.closest?.("[data-composer]");
    if (!form) return;
    drafts.save(form.dataset.draft, { content: field(form).value });
    want(form);
    grow(field(form));
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-composer]")) return;
    event.preventDefault();
    send(event.target);
  });
  document.addEventListener("keydown", (event) => {
    const form = event.target.closest?.("[data-composer]");
    if (form && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      send(form);
    }
  });
}
