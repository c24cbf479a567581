// What people type survives a reload: one entry a form in this browser, thrown away when it was sent or is a month old.

const PREFIX = "kandev:draft:";
const MONTH_MS = 30 * 24 * 3600 * 1000;

export function load(key) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + key)) || {};
  } catch {
    return {};
  }
}

export function save(key, value) {
  try {
    localStorage.setItem(PREFIX + key, JSON.stringify({ ...load(key), ...value, at: Date.now() }));
  } catch {
    // Storage is full or forbidden: the page itself still holds the text.
  }
}

export function drop(key) {
  try {
    localStorage.removeItem(PREFIX + key);
  } catch {
    // As above.
  }
}

export function sweep() {
  try {
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(PREFIX)).map((key) => key.slice(PREFIX.length));
    keys.filter((key) => !(Date.now() - load(key).at < MONTH_MS)).forEach(drop);
  } catch {
    // As above.
  }
}
