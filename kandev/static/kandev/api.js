// Calls to the same REST endpoints that everybody uses. A reply is a reply whatever its status; anything else is unclear.

export const BROWSER_TIMEOUT_MS = 40_000;
export const ENDED = ["completed", "failed", "cancelled"]; // states of a session that takes nothing any more
const { gettext, interpolate } = window;

function csrfToken() {
  const cookie = document.cookie.split("; ").find((part) => part.startsWith("csrftoken="));
  const field = document.querySelector("input[name=csrfmiddlewaretoken]");
  return cookie ? decodeURIComponent(cookie.split("=")[1]) : field ? field.value : "";
}

// → {kind: "reply", status, body, retryAfter} or {kind: "timeout" | "network"}
export async function call(method, url, body, { timeout = BROWSER_TIMEOUT_MS, keepalive = false } = {}) {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), timeout);
  try {
    const response = await fetch(url, {
      method,
      credentials: "same-origin",
      headers: { Accept: "application/json", "Content-Type": "application/json", "X-CSRFToken": csrfToken() },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: abort.signal,
      keepalive,
    });
    const text = await response.text();
    return { kind: "reply", status: response.status, body: parse(text), retryAfter: response.headers.get("Retry-After") };
  } catch {
    return { kind: abort.signal.aborted ? "timeout" : "network" };
  } finally {
    clearTimeout(timer);
  }
}

export const post = (url, body) => call("POST", url, body);

function parse(text) {
  try {
    const value = JSON.parse(text);
    return value && typeof value === "object" ? value : {};
  } catch {
    return {};
  }
}

// An identity for one message, made before the first try. randomUUID needs a secure context, a bare address is none.
export function newId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const isCode = (reply, status, code) => reply.kind === "reply" && reply.status === status && reply.body.code === code;

// One sentence for a reply that is no success.
export function explain(reply) {
  if (reply.kind === "timeout") return gettext("The server did not reply in time. Trying again is safe: it counts once.");
  if (reply.kind === "network") return gettext("The server could not be reached. Trying again is safe: it counts once.");
  const known = {
    401: gettext("You are signed out. Sign in again in another tab, then try again here."),
    403: gettext("You may see this, but not do that."),
    404: gettext("It does not exist any more, or it is not yours to see."),
    413: gettext("The text is too long for the server."),
    429: interpolate(gettext("Too many attempts. Try again in %s seconds."), [reply.retryAfter || "60"]),
  };
  if (reply.status === 403 && reply.body.code === "csrf_failed") return gettext("This page is out of date. Reload it; your text is kept.");
  return known[reply.status] || reply.body.error || gettext("Something failed on the server. Try again.");
}
