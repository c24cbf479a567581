// Words for people who do not look at the place where something changed, and notices at the top of the page.

export function announce(text) {
  const live = document.getElementById("live");
  live.textContent = "";
  requestAnimationFrame(() => { live.textContent = text; });
}

export function notice(text, { key = text, tone = "info", href = "", label = "" } = {}) {
  const place = document.getElementById("notices");
  const old = [...place.children].find((child) => child.dataset.key === key);
  const made = document.createElement("p");
  made.className = "notice";
  made.dataset.key = key;
  made.dataset.tone = tone;
  made.setAttribute("role", tone === "bad" ? "alert" : "status");
  made.append(text);
  if (href) made.append(" ", Object.assign(document.createElement("a"), { href, textContent: label }));
  const close = Object.assign(document.createElement("button"), { type: "button", className: "quiet", textContent: window.gettext("Dismiss") });
  close.addEventListener("click", () => made.remove());
  made.append(close);
  if (old) old.replaceWith(made);
  else place.append(made);
}

export function signedOut() {
  notice(window.gettext("You are signed out. What you typed is still here."), {
    key: "signed-out", tone: "bad", href: `/accounts/login/?next=${encodeURIComponent(location.pathname + location.search)}`, label: window.gettext("Sign in again"),
  });
}

export function withdraw(key) {
  document.querySelectorAll("#notices > .notice").forEach((made) => { if (made.dataset.key === key) made.remove(); });
}

// The alert line of a form; focus goes there so that the next Tab reaches the buttons.
export function showError(form, text, { focus = false } = {}) {
  const line = form.querySelector("[data-error]");
  line.textContent = text;
  line.hidden = !text;
  if (text && focus) line.focus();
}
