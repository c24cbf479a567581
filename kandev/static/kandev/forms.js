// Small forms that post JSON, dialogs, and buttons that do one thing.

import { explain, isCode, newId, post } from "./api.js";
import { announce, notice, showError } from "./announce.js";
import * as drafts from "./drafts.js";
import { onFresh } from "./fresh.js";
import { refresh } from "./socket.js";

const { gettext } = window;

const after = {
  reload: () => location.reload(),
  task: (body, form, prompt) => start(body.primary_session, prompt, `/tasks/${body.id}`),
  session: (body, form, prompt) => start(body.id, prompt, `${form.dataset.taskUrl}?session=${body.id}`),
};

// The first prompt goes as a message of its own with its own identity. When it is refused, the new session's composer
// holds it, and nothing has to be made twice.
async function start(sessionId, prompt, url) {
  if (sessionId && prompt) {
    const draft = { content: prompt, tried: prompt, clientMessageId: newId() };
    drafts.save(`composer-${sessionId}`, draft);
    const reply = await post(`/api/v1/task-sessions/${sessionId}/messages`, { content: prompt, client_message_id: draft.clientMessageId });
    if (reply.kind === "reply" && reply.status < 300) drafts.drop(`composer-${sessionId}`);
    else drafts.save(`composer-${sessionId}`, { trouble: explain(reply) });
  }
  location.assign(url);
}

const fields = (form) => [...form.elements].filter((field) => field.name && field.name !== "csrfmiddlewaretoken");
const values = (form) => Object.fromEntries(fields(form).filter((field) => field.value || !("omitEmpty" in field.dataset)).map((field) => [field.name, field.value]));

async function sendJSON(form) {
  const button = form.querySelector("button.primary");
  if (button.disabled) return;
  const { prompt = "", ...body } = values(form);
  agentMissing(form, "");
  if (prompt && !body.agent) {
    agentMissing(form, gettext("Choose the agent that gets the prompt."));
    form.elements.agent.focus();
    return;
  }
  setBusy(button, true);
  showError(form, "");
  const reply = await post(form.dataset.jsonForm, body);
  if (reply.kind === "reply" && reply.status < 300) {
    if (form.dataset.draft) drafts.drop(form.dataset.draft);
    await after[form.dataset.then](reply.body, form, prompt);
    return;
  }
  setBusy(button, false);
  showError(form, reply.kind === "reply" ? explain(reply) : gettext("It is not clear whether this arrived. Look at the board before you try again."));
}

// Said at the field: on a phone the end of the form is under the keyboard.
function agentMissing(form, text) {
  const line = form.querySelector("[data-agent-error]");
  if (!line) return;
  line.textContent = text;
  line.hidden = !text;
  form.elements.agent.setAttribute("aria-invalid", text ? "true" : "false");
}

function setBusy(button, on) {
  button.disabled = on;
  button.dataset.text ||= button.textContent;
  button.textContent = on ? button.dataset.busyText || button.dataset.text : button.dataset.text;
}

async function move(select) {
  const reply = await post(select.form.dataset.move, { state: select.value });
  if (reply.kind === "reply" && reply.status === 200) {
    announce(gettext("Moved."));
    refresh("tabs");
    return;
  }
  select.value = [...select.options].find((option) => option.defaultSelected).value;
  const text = isCode(reply, 409, "pending_input") ? gettext("An open question keeps this task where it is. Answer or skip it first.") : explain(reply);
  notice(text, { key: "move", tone: "bad" });
}

async function postOnly(button) {
  button.disabled = true;
  const reply = await post(button.dataset.post, {});
  button.disabled = false;
  button.closest("details")?.removeAttribute("open");
  if (reply.kind === "reply" && reply.status < 300) {
    location.reload();
    return;
  }
  notice(explain(reply), { key: "post", tone: "bad" });
}

function openDialog(id) {
  const dialog = document.getElementById(id);
  dialog.showModal();
  dialog.dispatchEvent(new CustomEvent("kandev:sheet-opened"));
}

async function copy(id) {
  const source = document.getElementById(id);
  getSelection().selectAllChildren(source);
  try {
    await navigator.clipboard.writeText(source.textContent);
    announce(gettext("Copied."));
  } catch {
    // The text is selected, so the keyboard can copy it.
  }
}

function onClick(event) {
  const button = event.target.closest("button");
  if (!button) {
    if (event.target.matches("dialog")) event.target.close();
    return;
  }
  if (button.dataset.openDialog) openDialog(button.dataset.openDialog);
  if ("closeDialog" in button.dataset) button.closest("dialog").close();
  if (button.dataset.post) postOnly(button);
  if (button.dataset.copy) copy(button.dataset.copy);
}

function onChange(event) {
  const form = event.target.form;
  if (form && "autoSubmit" in form.dataset) form.submit();
  if (form && form.dataset.move) move(event.target);
}

export function install() {
  onFresh("form[data-json-form][data-draft]", (form) => {
    const draft = drafts.load(form.dataset.draft).values || {};
    fields(form).filter((field) => draft[field.name] && field.type !== "hidden").forEach((field) => { field.value = draft[field.name]; });
  });
  document.addEventListener("click", onClick);
  document.addEventListener("change", onChange);
  document.addEventListener("input", (event) => {
    const form = event.target.form;
    if (form?.dataset.jsonForm && form.dataset.draft) drafts.save(form.dataset.draft, { values: values(form) });
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-json-form]")) return;
    event.preventDefault();
    sendJSON(event.target);
  });
}
