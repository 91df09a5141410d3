// Small helpers for elements of the run's page.

export const byId = (id) => document.getElementById(id);

export function span(name, words) {
  return Object.assign(document.createElement("span"), { className: name, textContent: words });
}

// Fills a place that is hidden while it is empty.
export function fill(id, ...words) {
  const place = byId(id);
  if (!place) return;
  place.replaceChildren(...words);
  place.hidden = !words.length;
}

export function button(words, work) {
  const made = Object.assign(document.createElement("button"), { type: "button", className: "button small", textContent: words });
  made.addEventListener("click", work);
  return made;
}

const SAY_MS = 2000;

// Says words to screen readers, at most every two seconds, the last ones if many came.
export class Announcer {
  constructor() {
    this.words = "";
    this.saidAt = -Infinity;
    this.timer = 0;
  }

  say(words) {
    this.words = words;
    this.timer ||= setTimeout(() => {
      this.timer = 0;
      this.saidAt = performance.now();
      byId("said").textContent = this.words;
    }, Math.max(0, this.saidAt + SAY_MS - performance.now()));
  }
}
