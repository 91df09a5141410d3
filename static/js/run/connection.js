// What a page says of its own connection: that it is not live, since when and why, and that it is live again.
// While it is not live, the page has the class `not-live`, which stops what moves on it. Takes the messages
// "connected", "away" and "closed" of stream.js, and failures of requests.

import { fill } from "./dom.js";

const LIVE_AGAIN_MS = 4000, FAILURES = 2;
const CROWDED = 4429, SIGNED_OUT = 4401, NO_ACCESS = [4403, 4404];

export class Connection {
  constructor(place, login) {
    this.place = place;
    this.login = login;
    this.since = null;
    this.failures = 0;
    this.timer = 0;
  }

  heard(message) {
    if (message.type === "connected") this.live();
    else if (message.code === CROWDED) this.away("Too many of your pages are open for this one to be live. Close some. Reconnecting...");
    else if (message.type === "away") this.away();
    else if (message.code === SIGNED_OUT) this.away("You are signed out, and this page is no longer updated. ", this.signIn());
    else if (NO_ACCESS.includes(message.code)) this.away("You no longer have access to this, and the page is no longer updated.");
  }

  // A part that the page fetches by itself failed (or null: it came). One failure may be chance.
  failed(error) {
    this.failures = error ? this.failures + 1 : 0;
    if (this.failures >= FAILURES && !this.since) fill(this.place, `This page cannot be updated right now. ${error.message} Retrying...`);
    else if (!this.failures && !this.since && !this.timer) fill(this.place);
  }

  live() {
    document.documentElement.classList.remove("not-live");
    clearTimeout(this.timer);
    this.timer = 0;
    const was = this.since;
    this.since = null;
    if (!was) {
      fill(this.place);
      return;
    }
    fill(this.place, "Connected again. The page is live.");
    this.timer = setTimeout(() => {
      this.timer = 0;
      fill(this.place);
    }, LIVE_AGAIN_MS);
  }

  away(...words) {
    clearTimeout(this.timer);
    this.timer = 0;
    document.documentElement.classList.add("not-live");
    const first = !this.since;
    this.since ??= new Date().toLocaleTimeString();
    if (words.length) fill(this.place, ...words);
    else if (first) fill(this.place, `Connection lost at ${this.since}. The page shows the state of then. Reconnecting...`);
  }

  signIn() {
    return Object.assign(document.createElement("a"), { href: `${this.login}?next=${encodeURIComponent(location.pathname + location.search)}`, textContent: "Sign in again" });
  }
}
