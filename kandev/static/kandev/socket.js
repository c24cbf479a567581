// The page's socket: subscribes, keeps icons true, and says which fragments to refresh. It carries no content itself.

import { call } from "./api.js";
import { announce, notice, signedOut, withdraw } from "./announce.js";
import * as icons from "./icons.js";

const { gettext } = window;
const FIRST_MS = 400;
const LONGEST_MS = 15_000;
const DEAD_CREDENTIAL = 4401;
const QUIET_MS = 25_000;
const DEBOUNCE_MS = { board: 400, inbox: 200 };
const REST = 3; // the board is left alone three times as long as it took, so that no crowd of boards keeps a server busy
const LONGEST_REST_MS = 6_000;
const EVERYTHING = ["transcript", "pending", "queue", "tabs", "board", "inbox"];

const scheduled = new Map();
const board = { begun: 0, restsUntil: 0 };

export function refresh(...names) {
  for (const name of names) {
    if (scheduled.has(name)) continue;
    scheduled.set(name, setTimeout(() => {
      scheduled.delete(name);
      if (name === "board" && boardRest() > 0) return refresh(name);
      document.body.dispatchEvent(new CustomEvent(`kandev:${name}`));
    }, Math.max(DEBOUNCE_MS[name] || 80, name === "board" ? boardRest() : 0)));
  }
}

function boardRest() {
  return board.begun ? DEBOUNCE_MS.board : board.restsUntil - performance.now();
}

function letBoardRest() {
  const place = document.querySelector('[hx-trigger^="kandev:board"]');
  if (!place) return;
  place.addEventListener("htmx:beforeRequest", () => { board.begun = performance.now(); });
  place.addEventListener("htmx:afterRequest", () => {
    const now = performance.now();
    Object.assign(board, { begun: 0, restsUntil: now + Math.min(LONGEST_REST_MS, REST * (now - board.begun)) });
  });
}

export function connect() {
  const wanted = topics();
  if (!wanted.length) return;
  letBoardRest();
  const link = { wanted, tries: 0, socket: null, timer: 0 };
  open(link);
  addEventListener("online", () => retryNow(link));
  document.addEventListener("visibilitychange", () => { if (!document.hidden) retryNow(link); });
}

function topics() {
  const texts = [...document.querySelectorAll("[data-subscribe]")].flatMap((place) => place.dataset.subscribe.trim().split(/\s+/));
  return [...new Set(texts.filter(Boolean))].map((text) => {
    const [kind, id] = text.split(":");
    return { [`${kind}_id`]: id };
  });
}

function open(link) {
  const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws/`);
  link.socket = socket;
  socket.addEventListener("open", () => {
    link.tries = 0;
    withdraw("signed-out");
    state("live");
    link.wanted.forEach((payload) => send(socket, "subscribe", payload));
    watchSilence(link, socket);
  });
  socket.addEventListener("message", (event) => {
    socket.heard = Date.now();
    receive(JSON.parse(event.data));
  });
  socket.addEventListener("close", (event) => {
    if (link.socket !== socket) return;
    if (event.code === DEAD_CREDENTIAL || !socket.heard) stillSignedIn();
    again(link);
  });
}

// A refused handshake says nothing to a page, so the server is asked whether it knows the person still.
async function stillSignedIn() {
  const reply = await call("GET", "/api/v1/boot");
  if (reply.kind === "reply" && reply.status === 401) signedOut();
}

function send(socket, action, payload) {
  socket.send(JSON.stringify({ id: `${action}-${Math.random().toString(36).slice(2)}`, type: "request", action, payload, timestamp: new Date().toISOString() }));
}

// A connection that died without a word is found by a ping that nobody answers.
function watchSilence(link, socket) {
  const timer = setInterval(() => {
    if (link.socket !== socket || socket.readyState !== WebSocket.OPEN) return clearInterval(timer);
    if (Date.now() - (socket.heard || 0) > 2.5 * QUIET_MS) return socket.close();
    return send(socket, "ping", {});
  }, QUIET_MS);
  socket.heard = Date.now();
}

function again(link) {
  link.tries += 1;
  if (link.tries > 1) state("away");
  const wait = Math.min(LONGEST_MS, FIRST_MS * 2 ** (link.tries - 1)) * (0.7 + 0.6 * Math.random());
  link.socket = null;
  clearTimeout(link.timer);
  link.timer = setTimeout(() => open(link), wait);
}

function retryNow(link) {
  if (link.socket) return;
  clearTimeout(link.timer);
  open(link);
}

function state(name) {
  const place = document.querySelector("[data-connection]");
  if (!place) return;
  const text = name === "live" ? gettext("Live") : gettext("Reconnecting…");
  if (name !== place.dataset.connection && (place.dataset.connection || name === "away")) announce(text);
  place.hidden = false;
  place.dataset.connection = name;
  place.querySelector("[data-connection-text]").textContent = text;
}

function receive({ type, action, payload = {} }) {
  if (type === "response" && action === "subscribe") return snapshot(payload);
  if (type === "notification") return notification(action, payload);
  if (type === "error" && action === "subscribe") refresh(...EVERYTHING);
  return undefined;
}

// Taken after the subscription holds, so whatever happened before it is in what is fetched now.
function snapshot(payload) {
  (payload.sessions || []).forEach((session) => icons.learn(session.session_id, session));
  withdraw("lost");
  refresh(...EVERYTHING);
}

function notification(action, payload) {
  if (action === "task.deleted") return taskGone(payload.task_id, gettext("This task was deleted."));
  if (action === "snapshot") return snapshot(payload);
  if (action === "unsubscribed") return taskGone(payload.task_id, gettext("You can no longer see this task."));
  if (payload.session_id) icons.learn(payload.session_id, payload);
  refresh("board", "tabs");
  if ("pending_action" in payload || action === "task.summary.updated") refresh("inbox");
  if (payload.session_id && payload.session_id === openSession()) refresh("transcript", "queue", "pending");
  return undefined;
}

const openSession = () => document.querySelector("[data-session-page]")?.dataset.sessionPage;

function taskGone(taskId, text) {
  refresh("board", "inbox");
  const here = document.querySelector("[data-task-page]");
  if (here && (!taskId || here.dataset.taskPage === taskId)) notice(text, { key: "lost", tone: "bad", href: "/", label: gettext("Go to the board") });
}
