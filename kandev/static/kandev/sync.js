// Drafts on the server: another device finds what was typed here. Only what changed in this page is sent, question by
// question, a moment after the last key. What the server has not acknowledged stays in this browser and wins here.

import { call } from "./api.js";
import * as drafts from "./drafts.js";

const QUIET_MS = 700;
const AGAIN_MS = 8_000;
const EMPTY = JSON.stringify([[], ""]);
const links = new Map(); // form → {timer, running, over}

const synced = (key) => drafts.load(key).synced || {};

// What a form starts with: for each question this browser's unsaved value, else the server's.
export function merge(form, key, local) {
  if (!form.dataset.draftUrl) return local;
  const server = Object.fromEntries(Object.entries(JSON.parse(form.dataset.serverDraft)).map(([id, value]) => [id, JSON.stringify(value)]));
  const acknowledged = synced(key);
  const ids = new Set([...Object.keys(local), ...Object.keys(server)]);
  const mine = (id) => id in local && local[id] !== (acknowledged[id] || EMPTY);
  drafts.save(key, { synced: server });
  return Object.fromEntries([...ids].map((id) => [id, mine(id) ? local[id] : server[id] || EMPTY]));
}

export function schedule(form, key, values, wait = QUIET_MS) {
  if (!form.dataset.draftUrl) return;
  const link = links.get(form) || {};
  links.set(form, link);
  clearTimeout(link.timer);
  link.over = false;
  link.timer = setTimeout(() => push(form, key, values), wait);
}

function body(changed) {
  const answers = changed.filter(([id]) => id).map(([id, value]) => {
    const [selected_options, custom_text] = JSON.parse(value);
    return { question_id: id, selected_options, custom_text };
  });
  const reason = changed.find(([id]) => !id);
  return { answers, ...(reason ? { reject_reason: JSON.parse(reason[1])[1] } : {}) };
}

async function push(form, key, values, { leaving = false } = {}) {
  const link = links.get(form);
  clearTimeout(link.timer);
  link.timer = 0;
  const before = synced(key);
  const changed = Object.entries(values(form)).filter(([id, value]) => value !== (before[id] || EMPTY));
  if (link.over || !changed.length) return;
  if (link.running && !leaving) return schedule(form, key, values);
  link.running = true;
  const reply = await call("PUT", form.dataset.draftUrl, body(changed), { keepalive: leaving });
  link.running = false;
  if (link.over) return call("DELETE", form.dataset.draftUrl);
  if (reply.kind === "reply" && reply.status === 204) drafts.save(key, { synced: { ...synced(key), ...Object.fromEntries(changed) } });
  else if (reply.kind !== "reply" || reply.status >= 500) schedule(form, key, values, AGAIN_MS);
  return undefined;
}

// The server forgets an answered draft by itself; a save that is on its way is followed by this.
export function forget(form) {
  if (!form.dataset.draftUrl) return;
  const link = links.get(form) || {};
  links.set(form, link);
  clearTimeout(link.timer);
  link.over = true;
  if (!link.running) call("DELETE", form.dataset.draftUrl);
}

export function flushWhenLeaving(keyOf, values) {
  const flush = () => links.forEach((link, form) => { if (link.timer) push(form, keyOf(form), values, { leaving: true }); });
  addEventListener("pagehide", flush);
  document.addEventListener("visibilitychange", () => { if (document.hidden) flush(); });
}
