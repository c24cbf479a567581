// "5 minutes ago" stays true while the page is open.

const STEPS = [[60, "second", 1], [3600, "minute", 60], [86400, "hour", 3600], [86400 * 30, "day", 86400], [86400 * 365, "month", 86400 * 30], [Infinity, "year", 86400 * 365]];
const words = new Intl.RelativeTimeFormat(document.documentElement.lang || "en", { numeric: "auto" });

function say(when) {
  const seconds = Math.max(0, (Date.now() - Date.parse(when)) / 1000);
  const [, unit, size] = STEPS.find(([limit]) => seconds < limit);
  return seconds < 10 ? window.gettext("just now") : words.format(-Math.floor(seconds / size), unit);
}

export function tell(time) {
  time.textContent = say(time.dateTime);
}

export function keepTelling() {
  setInterval(() => document.querySelectorAll("time[data-ago]").forEach(tell), 30_000);
}
