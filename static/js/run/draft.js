// An answer that is not submitted yet is kept in this browser, for each person and question, as the editor keeps
// texts: a reload, or a sign-in when the session ended, shows it again. Takes the page's data and what opens a
// file; what was submitted, and what was typed for another question, is dropped.

const FIELDS = "textarea, input[type=text]";

export class Draft {
  constructor(about, open) {
    this.prefix = `spak-answer:${about.user}:${about.page}:`;
    this.open = open;
    this.restored = "";
    const within = (event) => event.target.closest?.("#run-ask form") && event.target.matches(FIELDS);
    document.addEventListener("input", (event) => { if (within(event)) this.store(); });
    addEventListener("pagehide", () => this.store());
    this.restore();
  }

  get key() {
    const of = this.form?.elements.of.value;
    return of ? this.prefix + of : "";
  }

  get ask() {
    return document.getElementById("run-ask");
  }

  // The form with a field to type in: none while a worker takes an answer up.
  get form() {
    return [...this.ask.querySelectorAll("form")].find((form) => form.querySelector("textarea"));
  }

  // What was typed or changed, in order: [file or "", name of the field, value].
  typed() {
    const fields = [...this.form.querySelectorAll(FIELDS)].filter((field) => field.value !== field.defaultValue);
    return fields.map((field) => [field.closest(".edit")?.dataset.path ?? "", field.name, field.value]);
  }

  store() {
    const { key } = this;
    if (!key || this.busy) return;
    const typed = this.typed();
    attempt(() => (typed.length ? localStorage.setItem(key, JSON.stringify(typed)) : localStorage.removeItem(key)));
  }

  async restore() {
    const { key } = this;
    attempt(() => {
      for (const name of Object.keys(localStorage)) if (name.startsWith(this.prefix) && name !== key) localStorage.removeItem(name);
    });
    if (!key || key === this.restored) return;
    this.restored = key;
    const found = attempt(() => JSON.parse(localStorage.getItem(key)));
    if (!Array.isArray(found) || !found.length || this.typed().length) return;
    this.busy = true;
    for (const [path, name, value] of found) {
      const place = path ? await this.open(path) : this.form;
      const field = [...(place?.querySelectorAll(FIELDS) ?? [])].find((one) => one.name === name && (path || !one.closest(".edit")));
      if (!field) continue;
      field.value = value;
      const folded = field.closest("details");
      if (folded) folded.open = true;
    }
    this.busy = false;
    if (this.typed().length) this.tell();
  }

  tell() {
    const note = Object.assign(document.createElement("p"), { className: "message", textContent: "Your answer is here again, as you left it. It is not submitted yet. " });
    const drop = Object.assign(document.createElement("button"), { type: "button", className: "link", textContent: "Discard it" });
    note.setAttribute("role", "status");
    drop.addEventListener("click", () => {
      for (const field of this.form.querySelectorAll(FIELDS)) field.value = field.defaultValue;
      note.remove();
      this.store();
      this.form.querySelector("textarea").focus();
    });
    note.append(drop);
    this.form.prepend(note);
  }
}

// A browser may keep nothing: then the answer is only on the page.
function attempt(work) {
  try {
    return work();
  } catch {
    return null;
  }
}
