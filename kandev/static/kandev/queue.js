// Messages that wait: taken back while they still do. "Edit" takes one back and puts its text into the composer.

import { call, explain, isCode } from "./api.js";
import { announce, notice } from "./announce.js";
import { fill } from "./composer.js";
import { refresh } from "./socket.js";

const { gettext } = window;

async function withdraw(button) {
  const row = button.closest("[data-queued]");
  const buttons = [...row.querySelectorAll("button")];
  const setBusy = (on) => buttons.forEach((one) => { one.disabled = on; });
  setBusy(true);
  const reply = await call("DELETE", row.dataset.queued);
  setBusy(false);
  if (reply.kind === "reply" && [204, 404].includes(reply.status)) taken(button, row);
  else if (isCode(reply, 409, "not_queued")) notice(gettext("It has gone out already, so it cannot be taken back."), { key: "queue" });
  else notice(explain(reply), { key: "queue", tone: "bad" });
  refresh("queue", "transcript");
}

function taken(button, row) {
  const next = row.nextElementSibling || row.previousElementSibling;
  const text = row.querySelector("p").textContent;
  row.remove();
  announce(gettext("Taken out of the queue."));
  if (button.dataset.withdraw === "edit") fill(text);
  else (next?.querySelector("button") || document.getElementById("composer-text"))?.focus();
}

export function install() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-withdraw]");
    if (button) withdraw(button);
  });
}
