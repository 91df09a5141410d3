// Nothing that was typed is lost: the text is kept in this browser at once and as a draft on the server soon
// after. When the server is away, or the session has ended, a banner says so and it is tried again.

import { banner, later } from "./dom.js";
import { ask, Offline, Refused, renew, sentence, SignedOut } from "./server.js";

const SOON = 1500;
const AGAIN = 4000;

export class Keeper {
  constructor(config, on) {
    this.config = config;
    this.on = on;
    this.key = `spak-draft:${config.user.id}:${config.spec.id}${config.patch ? `:${config.patch.number}` : ""}`;
    this.text = config.text;
    this.kept = config.text; // What the server has, as a draft or as the version.
    this.base = config.base_version;
    this.seen = config.seen; // When the draft on the server was saved that this page knows of; null: whatever it is.
    this.away = "";
    this.sending = null; // The draft that is on its way.
    this.local = later(200, () => this.store());
    this.soon = later(SOON, () => this.send());
    addEventListener("pagehide", () => this.leave());
    addEventListener("online", () => this.retry());
    addEventListener("focus", () => this.away && this.retry());
  }

  get dirty() {
    return this.text !== this.kept;
  }

  // What this browser kept and the server never got; null where there is none.
  remembered() {
    try {
      const found = JSON.parse(localStorage.getItem(this.key));
      return typeof found?.text === "string" && found.text !== this.config.text ? found : null;
    } catch {
      return null;
    }
  }

  change(text) {
    this.text = text;
    this.local();
    this.soon();
    this.on.state("typing");
  }

  store() {
    try {
      if (this.dirty) localStorage.setItem(this.key, JSON.stringify({ text: this.text, base: this.base, at: Date.now() }));
      else localStorage.removeItem(this.key);
    } catch {
      // No room, or a browser that keeps nothing: the draft on the server is what there is.
    }
  }

  forget() {
    this.local.cancel();
    try {
      localStorage.removeItem(this.key);
    } catch {
      // Nothing was kept.
    }
  }

  saved(version, text) {
    this.base = version;
    this.seen = "";
    this.kept = text;
    this.soon.cancel();
    this.reached();
    if (this.text === text) this.forget();
    else this.change(this.text);
  }

  // The text is a patch now, and no draft any more.
  handed(text) {
    this.seen = "";
    this.kept = text;
    this.soon.cancel();
    if (this.text === text) this.forget();
  }

  // True when the server has the text.
  async send() {
    this.soon.cancel();
    if (!this.dirty || this.sending) return !this.sending;
    this.sending = this.put();
    return this.sending;
  }

  async put() {
    const { text } = this;
    try {
      const answer = await ask(this.config.urls.draft, { text, base_version: this.base, seen: this.seen });
      this.kept = text;
      this.seen = answer.saved_at;
      this.reached();
      this.on.state("kept", answer.saved_at);
      if (this.dirty) this.soon();
      else this.forget();
      return true;
    } catch (error) {
      this.failed(error);
      return false;
    } finally {
      this.sending = null;
    }
  }

  // Does that while no draft is on its way, and sends none meanwhile: it would come after what is saved, as a
  // draft of an older text.
  async alone(work) {
    while (this.sending) await this.sending;
    this.soon.cancel();
    const done = work();
    this.sending = done.then(() => false, () => false);
    try {
      return await done;
    } finally {
      this.sending = null;
      if (this.dirty) this.soon();
    }
  }

  leave() {
    if (!this.dirty) return;
    this.local.now();
    ask(this.config.urls.draft, { text: this.text, base_version: this.base, seen: this.seen }, { keepalive: this.text.length < 50000 })
      .then((answer) => (this.seen = answer.saved_at))
      .catch(() => {});
  }

  // ---- away and back

  failed(error) {
    clearTimeout(this.timer);
    this.store();
    this.on.state("local");
    if (error instanceof Offline) {
      this.away = "offline";
      banner("away", "Connection lost. Keep typing: your text is stored in this browser and saved when the server is back.", { label: "Try now", run: () => this.retry() });
    } else if (error instanceof SignedOut) {
      this.away = "signed-out";
      banner("away", "You are signed out. Your text is stored in this browser.", { label: "Sign in", href: this.config.urls.login }, { label: "I am signed in again", run: () => this.retry() });
    } else if (error instanceof Refused && error.code === "web.draft_elsewhere") {
      this.away = "refused";
      const keep = () => ((this.seen = null), this.retry());
      const load = () => ((this.kept = this.text), this.forget(), location.reload());
      banner("away", "Your draft was changed in another window. This text is stored in this browser only.", { label: "Keep this text", run: keep }, { label: "Load the other draft", run: load });
      return;
    } else if (error instanceof Refused) {
      this.away = "refused";
      // The same text would be refused again: the next change is tried, or the person asks for it.
      banner("away", `${sentence(error)} Your text is not saved as a draft; it is kept in this browser.`, { label: "Try again", run: () => this.retry() });
      return;
    } else throw error;
    this.timer = setTimeout(() => this.retry(), AGAIN);
  }

  async retry() {
    clearTimeout(this.timer);
    if (!this.away) return;
    try {
      await renew();
    } catch (error) {
      this.failed(error);
      return;
    }
    const was = this.away;
    this.reached();
    if ((await this.send()) && was !== "refused") this.on.back(was);
  }

  reached() {
    this.away = "";
    clearTimeout(this.timer);
    banner("away");
  }
}
