// The icon of a session follows the greatest (epoch, sequence) that was seen, whichever channel brought it (I2, R42).

const known = new Map(); // session id → {epoch: BigInt, sequence: number, action: string}

const newer = (a, b) => a.epoch > b.epoch || (a.epoch === b.epoch && a.sequence > b.sequence);

// What an event or a snapshot says. Without the key pending_action it says nothing. → whether the icon's state changed
export function learn(sessionId, payload) {
  if (!("pending_action" in payload) || !payload.pending_action_revision) return false;
  const { epoch, sequence } = payload.pending_action_revision;
  return accept(sessionId, { epoch: BigInt(epoch), sequence: Number(sequence), action: payload.pending_action || "" });
}

function accept(sessionId, said) {
  const before = known.get(sessionId);
  if (before && !newer(said, before)) return false;
  known.set(sessionId, said);
  show(sessionId, said.action);
  return !before || before.action !== said.action;
}

function show(sessionId, action) {
  document.querySelectorAll(`[data-session="${CSS.escape(sessionId)}"]`).forEach((tab) => { tab.dataset.pending = action; });
}

// A tab that came with a fragment: it teaches, or it is older than what an event already said and is put right.
export function meet(tab) {
  const said = { epoch: BigInt(tab.dataset.epoch || 0), sequence: Number(tab.dataset.sequence || 0), action: tab.dataset.pending };
  const before = known.get(tab.dataset.session);
  if (before && newer(before, said)) tab.dataset.pending = before.action;
  else known.set(tab.dataset.session, said);
}
