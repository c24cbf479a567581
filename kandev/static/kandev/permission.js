// Permission requests: one button an option. What is picked counts once; a failure keeps the buttons for another try.

import { explain, isCode, post } from "./api.js";
import { announce, notice, showError } from "./announce.js";
import { refresh } from "./socket.js";

const { gettext, interpolate } = window;
const buttons = (form) => [...form.querySelectorAll("[data-permission-option]")];
const labelOf = (button) => button.querySelector("[data-label]");

function setBusy(form, chosen) {
  form.setAttribute("aria-busy", chosen ? "true" : "false");
  buttons(form).forEach((button) => {
    const label = labelOf(button);
    label.dataset.text ||= label.textContent;
    label.textContent = button === chosen ? button.dataset.busyText : label.dataset.text;
    button.disabled = Boolean(chosen);
  });
}

async function answer(form, button) {
  if (form.getAttribute("aria-busy") === "true") return;
  showError(form, "");
  setBusy(form, button);
  const reply = await post(form.dataset.answer, { option_id: button.dataset.permissionOption });
  setBusy(form, null);
  if (reply.kind === "reply" && reply.status === 200) decided(form, button, reply.body);
  else if (isCode(reply, 409, "not_active")) over(form, gettext("This request was over before your answer arrived."));
  else {
    showError(form, explain(reply), { focus: true });
    refresh("pending", "inbox");
  }
}

// Whoever comes second hears what was picked first; after an unclear try that may have been this page itself.
function decided(form, button, body) {
  const picked = buttons(form).find((one) => one.dataset.permissionOption === body.option_id);
  const name = picked ? labelOf(picked).textContent : body.option_id;
  if (body.claimed || picked === button) leave(form, interpolate(gettext("Decided: %s"), [name]));
  else over(form, interpolate(gettext("Somebody else decided first: %s"), [name]));
}

function over(form, text) {
  notice(text, { key: `permission-${form.dataset.answer}` });
  leave(form, text);
}

function leave(form, text) {
  const article = form.closest("[data-permission]");
  const had = article.contains(document.activeElement) || document.activeElement === document.body;
  article.remove();
  announce(text);
  if (had) document.querySelector("[data-permission] h2, [data-bundle]:not([data-settled]) h2, #composer-text")?.focus({ preventScroll: true });
  refresh("transcript", "pending", "queue", "tabs", "inbox");
}

export function install() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-permission-option]");
    if (button) answer(button.closest("form"), button);
  });
  document.addEventListener("submit", (event) => { if (event.target.matches("[data-permission-form]")) event.preventDefault(); });
}
