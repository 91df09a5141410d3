// Fields of the task form: a label, a control by the kind of its value, what it means, and what is wrong with it.
//
// A field comes from the server with the operation that sets it and the one that clears it. What a control
// cannot hold (a variable, a range) is edited in the spec's own writing, with completion.

import { el, icon, later, uid } from "./dom.js";

const MOST = 8; // Suggestions that are shown at once.

export function field(about, on) {
  const id = uid("setting");
  const help = `${id}-help`;
  const problem = el("p", { class: "problem", role: "alert", id: `${id}-problem` });
  const label = el(about.widget === "names" && on.off ? "span" : "label", { for: id }, about.label, about.required ? el("span", { class: "tag" }, "required") : null);
  const docs = el("small", { id: help }, sentences(about));
  const row = el("div", { class: `setting ${about.widget}`, "data-field": about.name });
  const send = async (ops) => {
    const wrong = await on.edit(ops);
    problem.textContent = wrong;
    row.classList.toggle("wrong", Boolean(wrong));
  };
  if (about.widget === "note") {
    row.append(el("span", { class: "label" }, about.label), el("p", { class: "empty" }, about.value));
    return row;
  }
  const control = (CONTROLS[about.widget] ?? CONTROLS.text)(about, { id, help, off: on.off, send, on });
  row.append(label, control, problem, docs);
  return row;
}

// What the control holds, as the value of the operation. Throws: Error with a sentence.
function typed(about, widget, raw) {
  if (widget === "number") {
    if (!Number.isFinite(Number(raw))) throw new Error(`${about.label} wants a number.`);
    return Number(raw);
  }
  if (widget === "choice") return about.bool ? raw === "true" : raw;
  if (widget === "lines") return raw.split("\n").map((line) => line.trim()).filter(Boolean);
  return widget === "source" ? { $source: raw } : raw;
}

function operation(about, widget, raw) {
  if (!raw.trim()) return about.present ? about.clear : null;
  return widget === "condition" ? { ...about.set, condition: raw.trim() } : { ...about.set, value: typed(about, widget, raw) };
}

// Sends what was typed, once, when the control is left or Enter ends it. The browser tells no "change" where the
// value was set last by the page (what is typed while the form is drawn anew, a suggestion that was taken).
function commits(control, about, widget, { send, on }) {
  control.dataset.was = control.value;
  const commit = () => {
    if (control.value === control.dataset.was || on.drawing()) return;
    control.dataset.was = control.value;
    try {
      const op = operation(about, widget, control.value);
      if (op) send([op]);
    } catch (error) {
      control.setCustomValidity(error.message);
      control.reportValidity();
      control.setCustomValidity("");
    }
  };
  control.addEventListener("change", commit);
  control.addEventListener("blur", commit);
}

function shared(about, { id, help, off }) {
  return { id, name: about.name, "aria-describedby": `${help} ${id}-problem`, disabled: off, placeholder: about.default ? `default: ${about.default}` : null };
}

const CONTROLS = {
  text(about, tools) {
    const control = el("textarea", { ...shared(about, tools), rows: String(Math.min(8, about.value.split("\n").length)), spellcheck: "false" });
    control.value = about.value;
    commits(control, about, "text", tools);
    control.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !control.value.includes("\n")) {
        event.preventDefault();
        control.dispatchEvent(new Event("change"));
      }
    });
    return about.place || about.name.startsWith("step.") ? el("div", { class: "pair" }, control, expression(about, tools, control)) : control;
  },
  lines(about, tools) {
    const control = el("textarea", { ...shared(about, tools), rows: String(Math.min(8, about.value.split("\n").length + 1)), spellcheck: "false", placeholder: "one on each line" });
    control.value = about.value;
    commits(control, about, "lines", tools);
    return control;
  },
  number(about, tools) {
    const control = el("input", { ...shared(about, tools), type: "text", inputmode: "decimal", autocomplete: "off" });
    control.value = about.value;
    commits(control, about, "number", tools);
    return control;
  },
  choice(about, tools) {
    const options = about.choices.some((item) => item.value === about.value) || !about.value ? about.choices : [{ value: about.value, about: "" }, ...about.choices];
    const control = el(
      "select",
      shared(about, tools),
      about.required && about.present ? null : el("option", { value: "" }, about.default ? `not set (default: ${about.default})` : "not set"),
      options.map((item) => el("option", { value: item.value, title: item.about || null }, item.value)),
    );
    control.value = about.value;
    commits(control, about, "choice", tools);
    return control;
  },
  names(about, tools) {
    const { id, off, send } = tools;
    const set = (names) => send([names.length ? { ...about.set, value: names } : about.clear]);
    const free = about.choices.filter((item) => !about.value.includes(item.value));
    const add = el("select", { ...shared(about, tools), id }, el("option", { value: "" }, "Add…"), free.map((item) => el("option", { value: item.value, title: item.about }, `${item.value}: ${item.about}`)));
    add.addEventListener("change", () => add.value && set([...about.value, add.value]));
    const chips = about.value.map((name) =>
      el("li", {}, el("code", {}, name), off ? null : el("button", { type: "button", class: "icon-button", name: `${about.name}.${name}`, "aria-label": `Remove ${name}`, onclick: () => set(about.value.filter((other) => other !== name)) }, icon("trash"))),
    );
    return el("div", { class: "names" }, chips.length ? el("ul", {}, chips) : null, off ? null : add);
  },
  source: (about, tools) => written(about, tools, "source"),
  condition: (about, tools) => written(about, tools, "condition"),
};

// The spec's own writing, on one line or several, with what may be written there.
function written(about, tools, widget) {
  const control = el("textarea", { ...shared(about, tools), class: "mono", rows: String(Math.min(6, about.value.split("\n").length)), spellcheck: "false", autocomplete: "off" });
  control.value = about.value;
  commits(control, about, widget, tools);
  return el("div", { class: "written" }, control, about.place ? suggestions(control, about, tools.on) : null);
}

// A text becomes a variable or another expression, and nothing is sent until one is typed.
function expression(about, tools, text) {
  if (tools.off) return null;
  const button = el("button", { type: "button", class: "icon-button", "aria-label": `Enter ${about.label} as a variable or expression`, title: "Variable or expression" }, "ƒ");
  button.addEventListener("click", () => {
    const other = written({ ...about, value: "" }, tools, "source");
    text.closest(".pair").replaceWith(other);
    other.firstChild.focus();
  });
  return button;
}

function suggestions(control, about, on) {
  const id = uid("suggestions");
  const list = el("ul", { class: "suggestions", role: "listbox", id, hidden: true, "aria-label": `Suggestions for ${about.label}` });
  for (const [name, value] of Object.entries({ role: "combobox", "aria-expanded": "false", "aria-controls": id, "aria-autocomplete": "list" })) control.setAttribute(name, value);
  let items = [];
  let at = -1;
  const close = () => {
    items = [];
    list.hidden = true;
    control.setAttribute("aria-expanded", "false");
    control.removeAttribute("aria-activedescendant");
  };
  const mark = (index) => {
    at = (index + items.length) % items.length;
    [...list.children].forEach((item, number) => item.setAttribute("aria-selected", String(number === at)));
    control.setAttribute("aria-activedescendant", list.children[at].id);
    list.children[at].scrollIntoView({ block: "nearest" });
  };
  const take = (item) => {
    control.setRangeText(item.text, item.from, item.to, "end");
    close();
    control.focus();
  };
  const look = later(150, async () => {
    const { from, to, before, after } = about.place;
    const text = on.text();
    const start = from + before.length;
    const { value, selectionStart } = control;
    const answer = await on.complete(text.slice(0, from) + before + value + after + text.slice(to), start + selectionStart);
    if (control.value !== value || document.activeElement !== control) return;
    const word = (item) => value.slice(item.from - start, selectionStart).toLowerCase();
    items = (answer?.items ?? [])
      .filter((item) => item.from >= start && item.to <= start + value.length && item.label.toLowerCase().startsWith(word(item)))
      .slice(0, MOST)
      .map((item) => ({ ...item, from: item.from - start, to: item.to - start, text: plain(item.insert) }));
    if (!items.length) return close();
    list.replaceChildren(...items.map((item) => {
      const option = el("li", { role: "option", id: uid("suggestion"), "aria-selected": "false" }, el("code", {}, item.label), el("span", {}, item.detail || ""));
      option.addEventListener("mousedown", (event) => (event.preventDefault(), take(item)));
      return option;
    }));
    list.hidden = false;
    control.setAttribute("aria-expanded", "true");
    mark(0);
  });
  control.addEventListener("input", look);
  control.addEventListener("blur", close);
  control.addEventListener("keydown", (event) => {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      look.now();
    } else if (items.length && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      mark(at + (event.key === "ArrowDown" ? 1 : -1));
    } else if (items.length && event.key === "Enter") {
      event.preventDefault();
      take(items[at]);
    } else if (items.length && event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      close();
    } else if (event.key === "Enter" && !event.shiftKey && !control.value.includes("\n")) {
      event.preventDefault();
      control.dispatchEvent(new Event("change"));
    }
  });
  return list;
}

// What a completion writes, without the marks of its places.
const plain = (insert) => insert.replace(/\$\{\d+:([^}]*)\}/g, "$1").replace(/\$\d/g, "");

// What the field means; for a list of names or a choice, what is chosen means.
function sentences({ about, choices = [], value, widget, example }) {
  const chosen = widget === "choice" ? choices.find((item) => item.value === value)?.about : "";
  const head = about ? about[0].toUpperCase() + about.slice(1) + (/[.!?]$/.test(about) ? "" : ".") : "";
  const shown = example && !value?.length ? `Example: ${example}` : "";
  return [head, chosen, shown].filter(Boolean).join(" ");
}
