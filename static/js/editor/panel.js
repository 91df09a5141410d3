// The selected task as a form: steps, checks, settings, conditions, and the agent's memory and budgets. Each
// change is an operation on the text, as from the graph, and one step of undo.

import { released } from "../press.js";
import { el, find, form, toast } from "./dom.js";
import { field } from "./fields.js";

const NONE = { task: null };

export class Panel {
  constructor(place, on) {
    this.place = place;
    this.on = on;
    this.name = "";
    this.shown = "";
    this.drawn = ""; // The task whose form is there.
    this.open = new Set(); // Steps and blocks that are unfolded, by task.
    this.had = {}; // What the form is of.
    this.next = ""; // The field to go to once it is drawn.
    this.drawing = false; // True while what is focused may leave the page.
    this.closed = new Map(); // What is folded, and how its parts are made.
    place.addEventListener("toggle", (event) => this.folded(event.target), true);
    place.addEventListener("click", (event) => this.fill(event.target.closest("summary")?.parentElement), true);
  }

  // Asks what the form holds now; an answer about a text that has changed since is dropped.
  async show(name) {
    this.name = name;
    const text = this.on.text();
    if (name && name === this.had.task && text === this.had.text) return;
    const found = name ? await this.on.ask(name).catch(() => null) : NONE;
    await released(this.place);
    if (found && name === this.name && text === this.on.text()) this.take(found, name, text);
  }

  take(found, name, text) {
    this.name = name;
    this.had = { task: name, text };
    this.draw(found);
  }

  draw(found) {
    const key = JSON.stringify(found);
    if (key === this.shown) return;
    this.shown = key;
    const kept = this.place.contains(document.activeElement) ? document.activeElement : null;
    const typed = kept?.matches("textarea, input") && kept.value !== kept.dataset.was ? kept.value : null;
    const on = { off: !this.on.editable, edit: this.on.edit, text: this.on.text, complete: this.on.complete, drawing: () => this.drawing };
    for (const details of this.place.querySelectorAll("details[data-fold]")) this.note(details);  // "toggle" comes later
    this.drawn = this.name;
    this.closed.clear();
    const parts = found.task === null ? [] : this.parts(found, on);
    this.drawing = true;
    this.place.replaceChildren(...parts);
    this.drawing = false;
    const wanted = this.next || kept?.name;
    if (!wanted) return;
    this.next = "";
    const control = this.go(wanted);
    this.next = "";
    if (typed !== null && control?.name === kept.name && control.value !== typed) {
      control.value = typed;
      control.setSelectionRange(kept.selectionStart, kept.selectionEnd);
    }
  }

  // To a control, now or once it is drawn.
  go(name) {
    const look = () => find(`[name="${CSS.escape(name)}"]`, this.place);
    let control = look();
    for (const details of this.closed.keys()) {
      if (control) break;
      this.fill(details);
      control = look();
    }
    if (!control) this.next = name;
    control?.closest("details:not([open])")?.setAttribute("open", "");
    control?.focus();
    return control;
  }

  parts(found, on) {
    return [
      ...this.steps(found, found.steps, on, false),
      ...this.steps(found, found.checks, on, true),
      ...found.sections.map((section) => this.section(section, on)),
      this.section({ title: "Agent: memory and budget", about: "For the whole spec, not only this task.", fields: found.agent }, on),
      this.fold("Last run", "Last run", "its input and output", () => [this.lastRun()], "section"),
    ];
  }

  // What the task was given and put out in its last run; asked for once it is unfolded.
  lastRun() {
    const place = el("div", { class: "last-run" });
    if (this.open.has(this.key("Last run"))) this.loadLast(place);
    return place;
  }

  async loadLast(place) {
    const task = this.name;
    try {
      const { run, entries } = await this.on.last(task);
      if (!run) return place.replaceChildren(el("p", { class: "empty" }, "No run of this spec has entered this task yet."));
      const rows = entries.map((one) => el("li", { class: one.bad ? "bad" : "" }, el("p", {}, el("code", {}, one.where), ` ${one.input}`), el("p", { class: "detail" }, one.result), one.output ? el("pre", { tabindex: "0", role: "region", "aria-label": `Output of ${one.where}` }, one.output) : null));
      place.replaceChildren(el("p", {}, el("a", { href: `${run.url}?tab=records&task=${encodeURIComponent(task)}` }, run.key), ` ${run.state}${run.version ? `, v${run.version}` : ""}`), el("ol", {}, rows));
    } catch (error) {
      place.replaceChildren(el("p", { class: "empty", role: "alert" }, error.message));
    }
    return place;
  }

  // ---- sections of settings: what the text has is shown, the rest is one click away

  section({ title, about = "", fields, adds = null }, on) {
    const [present, absent] = [fields.filter((item) => item.present || item.required), fields.filter((item) => !item.present && !item.required)];
    return this.fold(
      title,
      title,
      present.length ? present.map((item) => item.value).flat().filter(Boolean).join(", ") : "not set",
      () => [
        about ? el("p", { class: "empty" }, about[0].toUpperCase() + about.slice(1) + (about.endsWith(".") ? "" : ".")) : null,
        ...[...present, ...absent].map((item) => field(item, on)),
        adds && !on.off ? el("button", { type: "button", class: "button small", name: `add.${adds.key}`, onclick: () => this.parameter(adds) }, "Add parameter") : null,
      ],
      "section",
    );
  }

  async parameter(adds) {
    const done = await form("New parameter", [
      { name: "name", label: "Name", required: true },
      { name: "value", label: "Values", required: true, help: "A list, range(1, 8) or log(1e-4, 1)." },
    ], { submit: "Add", check: ({ name, value }) => this.on.edit([{ ...adds, key: `${adds.key}.${name}`, value: { $source: value } }]) });
    if (done) this.go(`task.${adds.key}.${done.name}`);
  }

  // ---- steps and checks

  steps(found, items, on, check) {
    const what = check ? "check" : "step";
    const names = items.map((item) => item.name);
    return [
      el("h4", {}, check ? "Checks" : "Steps"),
      items.length ? null : el("p", { class: "empty" }, check ? "None: no metric is read after the steps." : "None: the task plans with its TOOLS, or is only judged."),
      ...items.map((item, index) => this.step(found, item, index, names, on, check)),
      on.off ? null : el("button", { type: "button", class: "button small", name: `add-${what}`, onclick: () => this.add(found, names, check) }, `Add ${what}`),
    ].filter(Boolean);
  }

  step(found, item, index, names, on, check) {
    const { task } = found;
    const present = item.fields.filter((one) => one.present || one.required);
    const more = item.fields.filter((one) => !one.present && !one.required);
    const move = (to) => this.move(task, item.name, to);
    const [up, down] = [names[index - 2] ?? "", names[index + 1]];
    const act = (name, label, run, off = false) => el("button", { type: "button", class: "button small", name: `${name}-step.${item.name}`, disabled: off, onclick: run }, label);
    const kind = el("select", { name: `kind.${item.name}`, "aria-label": `Kind of ${item.name}`, disabled: on.off }, [...new Set([item.kind, ...found.kinds.map((one) => one.value)])].map((value) => el("option", { value, title: found.kinds.find((one) => one.value === value)?.about }, value)));
    kind.value = item.kind;
    kind.addEventListener("change", async () => {
      const wrong = await on.edit([{ op: "set_kind", task, step: item.name, kind: kind.value }]);
      if (wrong) toast(wrong, "error");
    });
    const made = this.fold(`step.${item.name}`, item.name, item.kind, () => [
      on.off
        ? null
        : el(
            "div",
            { class: "acts" },
            ...(check ? [] : [act("up", "Move up", () => move(up), index === 0), act("down", "Move down", () => move(down), index === names.length - 1)]),
            act("rename", "Rename", () => this.rename(task, item.name)),
            act("remove", "Delete", () => this.remove(task, item.name, check)),
          ),
      el("div", { class: "setting" }, el("span", { class: "label" }, "Kind"), kind, item.about ? el("small", {}, item.about) : null),
      ...present.map((one) => field(one, on)),
      more.length ? this.fold(`more.${item.name}`, "More fields", String(more.length), () => more.map((one) => field(one, on)), "more") : null,
    ], "step");
    if (!check && !on.off)
      find("summary", made).addEventListener("keydown", (event) => {
        const to = event.altKey ? { ArrowUp: index ? up : null, ArrowDown: down ?? null }[event.key] : null;
        if (to == null) return;
        event.preventDefault();
        move(to);
      });
    return made;
  }

  async add(found, names, check) {
    const what = check ? "check" : "step";
    const last = names.at(-1);
    const fields = [
      { name: "name", label: "Name", required: true, help: "A word: letters, digits, _ and -." },
      { name: "kind", label: "Kind", options: found.kinds.map((one) => ({ value: one.value, label: `${one.value}: ${one.about}` })), value: "tool.run" },
    ];
    if (!check && last) fields.push({ name: "after", label: "After", options: [{ value: "", label: "at the front" }, ...names], value: last });
    const op = { op: "add_step", task: found.task, ...(check ? { evaluation: true } : {}) };
    const done = await form(`New ${what}`, fields, {
      submit: `Add ${what}`,
      check: ({ name, kind, after }) => {
        this.open.add(this.key(`step.${name}`));
        return this.on.edit([{ ...op, name, kind, ...(after === undefined ? {} : { after }) }]);
      },
    });
    if (done) this.go(`kind.${done.name}`);
  }

  async move(task, step, after) {
    this.next = document.activeElement?.name ?? "";
    const wrong = await this.on.edit([{ op: "move_step", task, step, after }]);
    if (wrong) toast(wrong, "error");
  }

  async rename(task, step) {
    const done = await form(`Rename ${step}`, [{ name: "new", label: "New name", value: step, required: true }], {
      submit: "Rename",
      check: ({ new: chosen }) => {
        if (this.open.has(this.key(`step.${step}`))) this.open.add(this.key(`step.${chosen}`));
        return chosen === step ? "" : this.on.edit([{ op: "rename_step", task, step, new: chosen }]);
      },
    });
    if (done) this.go(`rename-step.${done.new}`);
  }

  async remove(task, step, check) {
    const wrong = await this.on.edit([{ op: "remove_step", task, step }]);
    if (wrong) toast(wrong, "error");
    else toast(`${check ? "Check" : "Step"} ${step} deleted.`, "info", { label: "Undo", run: this.on.undo });
    this.go(`add-${check ? "check" : "step"}`);
  }

  // ---- folding

  key = (name) => `${this.name}/${name}`;

  note(details) {
    this.open[details.open ? "add" : "delete"](`${this.drawn}/${details.dataset.fold}`);
  }

  // The parts are made once it is unfolded: a select in what is folded costs a layout of the whole page.
  fold(name, title, detail, parts, kind) {
    const open = this.open.has(this.key(name));
    const summary = el("summary", {}, el("span", { class: "name" }, title), el("span", { class: "detail" }, detail));
    const made = el("details", { class: kind, "data-fold": name, open }, summary);
    this.closed.set(made, parts);
    if (open) this.fill(made);
    return made;
  }

  fill(details) {
    const parts = this.closed.get(details);
    if (!parts) return;
    this.closed.delete(details);
    details.append(...parts().filter(Boolean));
  }

  folded(details) {
    if (!details.dataset?.fold) return;
    if (details.open) this.fill(details);
    this.note(details);
    const last = details.open ? find(".last-run:empty", details) : null;
    if (last) this.loadLast(last);
  }
}
